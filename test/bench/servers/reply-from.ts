/** `@fastify/reply-from` as its documentation sets it up: `node reply-from.js UPSTREAM_PORT`. */
import replyFrom from '@fastify/reply-from';
import fastify from 'fastify';

const base = `http://127.0.0.1:${process.argv[2]}`;
const app = fastify({ logger: false });
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
await app.register(replyFrom, { base, undici: { connections: 64, pipelining: 1 } });
app.post('/*', (request, reply) => {
  reply.from(request.url);
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ port: Number(new URL(url).port) }));
