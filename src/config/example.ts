/** What `serve` prints when there is no configuration: save it, change two URLs, run. */
export const TEN_LINE_EXAMPLE = `# yaml-language-server: $schema=./node_modules/headgate/config/headgate.schema.json
version: 1
listen: 127.0.0.1:8080            # MCP clients connect to http://127.0.0.1:8080/mcp
status: 127.0.0.1:9902            # /livez /readyz /metrics
upstreams:
  docs: { url: http://127.0.0.1:3001/mcp }
  city: { url: http://127.0.0.1:3002/mcp }
routes:
  - path: /mcp                    # one virtual MCP server
    upstreams: [docs, city]       # order = precedence
`;
