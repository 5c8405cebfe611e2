/** The status port: does the process live, does it take work, and how is it doing. GET and HEAD only. */
import fastify, { type FastifyInstance } from 'fastify';
import type { Metrics } from '../observability/metrics.ts';

/** Something that must hold for the gateway to take work. */
export interface Check {
  readonly name: string;
  readonly holds: boolean;
}

export interface StatusOptions {
  readonly metrics: Metrics;
  /** In the order they are told. *Never* the health of upstreams: one bad upstream would take every replica out. */
  readonly checks: () => readonly Check[];
}

const PATHS = ['/livez', '/readyz', '/metrics'];

/** Makes the status server; it is not listening yet. */
export function createStatus({ metrics, checks }: StatusOptions): FastifyInstance {
  const app = fastify({ logger: false, forceCloseConnections: true, return503OnClosing: false });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers({ 'Cache-Control': 'no-store', 'Content-Type': 'text/plain; charset=utf-8' });
    done();
  });
  app.get('/livez', (request, reply) => {
    reply.send(verbose(request.query) ? report([{ name: 'process', holds: true }], 'livez') : 'ok\n');
  });
  app.get('/readyz', (request, reply) => {
    const found = checks();
    const ready = found.every((check) => check.holds);
    reply.code(ready ? 200 : 503);
    if (verbose(request.query)) reply.send(report(found, 'readyz'));
    else reply.send(ready ? 'ok\n' : 'not ready\n');
  });
  app.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await metrics.render();
    return reply.header('Content-Type', contentType).send(body);
  });
  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = (request.raw.url ?? '').split('?');
    if (!PATHS.includes(path)) reply.code(404).send('not found; there are /livez, /readyz and /metrics\n');
    else reply.code(405).header('Allow', 'GET, HEAD').send('GET and HEAD only\n');
  });
  app.setErrorHandler((_error, _request, reply) => {
    reply.code(500).send('internal error\n');
  });
  return app;
}

function verbose(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'verbose' in query;
}

/** As Kubernetes writes it, so that people can read it. */
function report(checks: readonly Check[], name: string): string {
  const lines = checks.map((check) => (check.holds ? `[+]${check.name} ok` : `[-]${check.name} failed`));
  const holds = checks.every((check) => check.holds);
  return `${lines.join('\n')}\n${name} check ${holds ? 'passed' : 'failed'}\n`;
}
