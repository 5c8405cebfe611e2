/** A client that listens through a gateway and hears every message. */
import { type ClientRequest, request as httpRequest } from 'node:http';
import { mirrored, rpc } from '../support/mcp.ts';
import { headersOf, metaOf } from './client.ts';
import type { Listen, Message } from './listen-oracle.ts';
import type { Route } from './oracle.ts';

export interface Hooks {
  readonly heard: (message: Message) => void;
  /** Once. `detail`: what was wrong, where the stream was no stream. */
  readonly closed: (detail: string) => void;
}

export interface Ear {
  /** The client leaves. */
  leave(): void;
}

/** Opens a listen. @param origin of the gateway. */
export function openEar(origin: string, route: Route, listen: Listen, { heard, closed }: Hooks): Ear {
  const notifications = {
    ...(listen.lists === 'asked' && { resourcesListChanged: true }),
    resourceSubscriptions: listen.uris,
  };
  const body = rpc('subscriptions/listen', { _meta: metaOf(listen.caller), notifications }, listen.id);
  let isOver = false;
  const over = (detail: string): void => {
    if (isOver) return;
    isOver = true;
    closed(detail);
  };
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...mirrored('subscriptions/listen'),
    ...headersOf(listen.caller),
  };
  const request: ClientRequest = httpRequest(
    `${origin}${route}`,
    { method: 'POST', agent: false, headers },
    (response) => {
      const isStream = /^text\/event-stream/.test(String(response.headers['content-type']));
      const detail = isStream && response.statusCode === 200 ? '' : `status ${response.statusCode}`;
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        const events = (rest + chunk).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) {
          const data = event.split('\n').flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []));
          if (data.length > 0) heard(JSON.parse(data.join('\n')) as Message);
        }
      });
      response.on('error', () => over(detail));
      response.on('close', () => over(detail));
    },
  );
  request.on('error', (error) => over(String(error)));
  request.end(JSON.stringify(body));
  return {
    leave: () => {
      isOver = true;
      request.destroy();
    },
  };
}
