/**
 * A client has sent its last byte. Has it left, or does it only send no more?
 *
 * TCP says the same of both. Nearly always it has left, and its upstream work must end (R35); but one that closed
 * its sending side alone is waiting for its answer. The difference shows in what becomes of bytes sent to it: of
 * those sent to one that has left comes a reset, which the write after them meets. So an interim response goes out,
 * which every client must pass over, and again, until the answer begins or the connection breaks.
 * Where nothing can be written between (the answer has begun, or the client speaks HTTP/1.0), it has left.
 * *Spec:* RFC 9110, section 15.2; RFC 9293, section 3.6.
 */
import type { Socket } from 'node:net';
import type { EdgeContext, Live } from './live.ts';

const INTERIM = 'HTTP/1.1 100 Continue\r\n\r\n';
/** A reset takes as long as the way to the client and back: nearby clients are found gone at once. */
const FIRST_LOOK_MS = 10;
/** Looks become rarer, up to this. */
const MAX_LOOK_MS = 1_000;

/** Call when the other end of a connection has finished sending. */
export function onClientEnd(context: EdgeContext, socket: Socket): void {
  const live = answeredOn(context, socket);
  if (live === undefined) return;
  const { response } = live;
  if (response.headersSent ? response.writableLength === 0 : live.request.httpVersion === '1.0') {
    socket.destroy();
  } else {
    lookWhetherGone(context, socket);
  }
}

/** Ends what is done for a client that cannot be heard leaving, as long as its answer has not begun. */
export function lookWhetherGone(context: EdgeContext, socket: Socket): void {
  look(context, socket, FIRST_LOOK_MS);
}

function look(context: EdgeContext, socket: Socket, afterMs: number): void {
  const live = answeredOn(context, socket);
  if (live === undefined) return;
  // Once an answer has begun, its own bytes are what a reset answers.
  if (!live.response.headersSent) socket.write(INTERIM);
  else if (live.response.writableLength === 0) return;
  setTimeout(() => look(context, socket, Math.min(2 * afterMs, MAX_LOOK_MS)), afterMs).unref();
}

/** The request whose answer is next on this connection, unless all of it is written. */
function answeredOn({ open }: EdgeContext, socket: Socket): Live | undefined {
  if (socket.destroyed) return undefined;
  for (const live of open) {
    const { response } = live;
    if (live.request.socket === socket && response.socket !== null && !response.writableEnded) return live;
  }
  return undefined;
}
