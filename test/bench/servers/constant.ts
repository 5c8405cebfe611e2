/** What Fastify costs by itself: a constant for every POST, the body taken as a Buffer and not looked at. */
import fastify from 'fastify';
import { readAnswer, SIZES, type SizeName } from '../wire.ts';

const app = fastify({ logger: false });
app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
  done(null, body),
);
for (const size of Object.keys(SIZES) as SizeName[]) {
  const text = readAnswer('7', `bench://${size}`, SIZES[size], 'public');
  // A short string goes out in one piece with the head; of what is longer a Buffer is the fastest there is.
  const payload = size === '2k' ? text : Buffer.from(text);
  app.post(`/${size}`, (_request, reply) => {
    reply.header('content-type', 'application/json').send(payload);
  });
}
const url = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ port: Number(new URL(url).port) }));
