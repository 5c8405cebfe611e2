/** The world of the isolation model: the real pipeline between callers and upstreams that are both the model's. */
import assert from 'node:assert/strict';
import { classify } from '../../src/protocol/classify.ts';
import type { Exchange, Reply } from '../../src/protocol/exchange.ts';
import { readHead } from '../../src/protocol/headers.ts';
import type { StreamOutcome, StreamRequest } from '../../src/upstream/types.ts';
import { turn } from '../support/cache.ts';
import { meta, mirrored, rawHeaders, rpc } from '../support/mcp.ts';
import { type Fleet, fleet, type Script } from '../support/scripted.ts';
import {
  type Auth,
  FAMILIES,
  type Headers,
  type Kind,
  type Method,
  type Move,
  OPEN,
  type Policy,
  ROUTES,
  type Saying,
  type Start,
  seesCallers,
  TELLING,
  tellingOn,
} from './isolation-moves.ts';
import {
  checkAudience,
  checkTime,
  isPublic,
  type Question,
  type Request,
  type Result,
  STALE_MS,
  seen,
  varyingOf,
} from './isolation-oracle.ts';

const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
const OWN_TOKEN = 'Bearer the-gateways-own';

export class World {
  readonly #kinds: readonly Kind[];
  readonly #callers: readonly Headers[];
  readonly #telling: readonly string[];
  readonly #contexts: readonly string[];
  readonly #fleet: Fleet;
  readonly #questions: Question[] = [];
  readonly #requests: Request[] = [];
  readonly #cursors: { readonly method: Method; readonly text: string }[] = [];
  /** `context kind upstream id`, and with `everybody` for a context. */
  readonly #taught = new Set<string>();
  readonly #faults: unknown[] = [];
  #order = 0;
  #timeMs = 1_000_000;

  constructor({ route, policies, callers, pageSize }: Start) {
    this.#kinds = ROUTES[route] ?? [];
    this.#callers = FAMILIES[callers] ?? [];
    this.#telling = tellingOn(this.#kinds);
    this.#contexts = [...new Set(this.#callers.map((headers) => this.#contextOf(headers)))];
    this.#fleet = fleet({
      upstreams: this.#kinds.map((kind, rank) => ({
        name: kind.name,
        script: this.#script(kind, policies[rank] ?? 'respect'),
        config: {
          auth: authOf(kind.auth),
          forwardHeaders: kind.forwardHeaders,
          cache: {
            ttlDefaultMs: 0,
            ttlMaxMs: 86_400_000,
            rules: [],
            scope: policies[rank] ?? 'respect',
            staleIfErrorMs: STALE_MS,
          },
        },
      })),
      route: { pageSize },
      partitionHeaders: ['x-tenant'],
    });
    for (const [rank, kind] of this.#kinds.entries()) {
      Object.assign(this.#fleet.upstreams[rank] as object, {
        stream: (request: StreamRequest) => this.#called(kind, request),
      });
    }
  }

  async move(move: Move): Promise<void> {
    switch (move.kind) {
      case 'ask':
        for (const caller of move.callers) this.#ask(caller, move.method, move.pick, undefined);
        break;
      case 'continue': {
        const cursor = this.#cursors[move.pick % Math.max(1, this.#cursors.length)];
        if (cursor !== undefined) this.#ask(move.caller, cursor.method, 0, cursor.text);
        break;
      }
      case 'land': {
        const waiting = this.#questions.filter(({ landed }) => landed === undefined);
        const from = move.pick % Math.max(1, waiting.length);
        for (const question of waiting.slice(from, from + move.most)) this.#land(question, move.saying);
        break;
      }
      case 'tick':
        this.#tick(move.ms);
        break;
      case 'lapse': {
        const earlier = this.#requests[move.pick % Math.max(1, this.#requests.length)];
        if (earlier === undefined) break;
        this.#tick(move.ms);
        this.#ask(earlier.caller, earlier.method, earlier.pick, undefined);
        await turn();
        for (const question of this.#questions)
          if (question.landed === undefined) this.#land(question, { kind: 'failure', how: 'http_5xx' });
        break;
      }
      case 'leave': {
        const open = this.#requests.filter(({ done }) => !done);
        open[move.pick % Math.max(1, open.length)]?.controller.abort(new Error('left'));
        break;
      }
    }
    await turn();
    this.#check();
  }

  /** Answers everything that is still asked; every request must come to an end. */
  async drain(): Promise<void> {
    for (let round = 0; round < 100 && this.#requests.some(({ done }) => !done); round++) {
      for (const question of this.#questions)
        if (question.landed === undefined)
          this.#land(question, { kind: 'result', scope: 'private', ttlMs: 5_000 });
      await turn();
      this.#check();
    }
    assert.ok(
      this.#requests.every(({ done }) => done),
      'a request never ends',
    );
  }

  #check(): void {
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  #contextOf(headers: Headers): string {
    return JSON.stringify(
      this.#telling.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
  }

  /** Any of the callers of that context: what they may tell an upstream is the same. */
  #callerOf(mark: string): Headers | undefined {
    return this.#callers.find((headers) => this.#contextOf(headers) === mark);
  }

  #tick(ms: number): void {
    this.#timeMs += ms;
    this.#fleet.tick(ms);
  }

  // The upstreams' side.

  #script(kind: Kind, policy: Policy): Script {
    return (method, params, { headers }) => {
      const info = (params._meta as Record<string, { name?: string; version?: string } | undefined>)[
        CLIENT_INFO
      ];
      const mark = info?.name ?? '';
      const caller = this.#callerOf(mark);
      const madeFor = caller === undefined ? 'gateway' : mark;
      this.#guard(() =>
        assert.deepEqual(
          credentialsIn(headers),
          credentialsFor(kind, caller),
          `${kind.name} is told otherwise`,
        ),
      );
      return new Promise((resolve) => {
        const question: Question = {
          serial: this.#questions.length,
          upstream: kind,
          policy,
          method,
          uri: params.uri as string | undefined,
          cursor: params.cursor as string | undefined,
          madeFor,
          madeIn: Number(info?.version),
          varying: varyingOf(kind, headers),
          askedAt: ++this.#order,
          handedMs: Number.NEGATIVE_INFINITY,
          landed: undefined,
          answer: resolve,
        };
        this.#questions.push(question);
        if (method === 'resources/read') this.#guard(() => this.#checkRouted(question, caller ?? {}));
        // The gateway asks on its own what an upstream is: nobody waits for that here.
        if (madeFor === 'gateway') this.#land(question, { kind: 'result', scope: 'private', ttlMs: 0 });
      });
    };
  }

  #land(question: Question, saying: Saying): void {
    question.landed = { at: ++this.#order, timeMs: this.#timeMs, saying };
    const { serial, upstream } = question;
    switch (saying.kind) {
      case 'result': {
        const { scope, ttlMs } = saying;
        question.answer({
          result: { ...this.#content(question), resultType: 'complete', cacheScope: scope, ttlMs },
        });
        return;
      }
      case 'error':
        question.answer({
          error: {
            code: saying.code,
            message: `<<${serial}>>`,
            data: { of: upstream.name, said: `<<${serial}>>` },
          },
        });
        return;
      case 'input_required':
        question.answer({
          result: {
            resultType: 'input_required',
            inputRequests: { x: `<<${serial}>>` },
            requestState: `<<${serial}>>`,
          },
        });
        return;
      case 'refused':
        question.answer({ refused: saying.status, challenge: `Bearer error="<<${serial}>>"` });
        return;
      case 'failure':
        question.answer({ failure: saying.how });
    }
  }

  /** What this upstream has for that caller: things for everybody, and something of the caller's own. */
  #content(question: Question): Record<string, unknown> {
    const { serial, upstream, method, uri, madeFor } = question;
    const text = `<<${serial}>>`;
    const own = `of-${this.#contexts.indexOf(madeFor)}`;
    const isSecond = question.cursor === 'p2';
    const page = <T>(kind: string, ids: readonly string[], item: (id: string) => T) => {
      const shown = isSecond ? ids.slice(2) : ids.slice(0, 2);
      const audience = isPublic(question) || !seesCallers(upstream) ? 'everybody' : madeFor;
      for (const id of shown) this.#taught.add(`${audience} ${kind} ${upstream.name} ${id}`);
      return { items: shown.map(item), ...(!isSecond && { nextCursor: 'p2' }) };
    };
    const named = (id: string) => ({ name: id, description: text });
    const { name } = upstream;
    switch (method) {
      case 'server/discover':
        return {
          supportedVersions: ['2026-07-28'],
          capabilities: { resources: {}, tools: {}, prompts: {} },
          instructions: text,
        };
      case 'resources/list': {
        const { items, ...rest } = page(
          'resources',
          [`res://${name}/1`, `priv://${name}/${own}`, `res://${name}/2`],
          (id) => ({ uri: id, ...named(id) }),
        );
        return { resources: items, ...rest };
      }
      case 'resources/templates/list': {
        const { items, ...rest } = page(
          'templates',
          [`tpl://${name}/{x}`, `ptpl://${name}/${own}/{x}`, `tpl2://${name}/{x}`],
          (id) => ({ uriTemplate: id, ...named(id) }),
        );
        return { resourceTemplates: items, ...rest };
      }
      case 'prompts/list': {
        const { items, ...rest } = page('prompts', [`${name}-p`, `${name}-p-${own}`, `${name}-q`], named);
        return { prompts: items, ...rest };
      }
      case 'tools/list': {
        const { items, ...rest } = page('tools', [`${name}-t`, `${name}-${own}`, `${name}-u`], (id) => ({
          inputSchema: { type: 'object' },
          ...named(id),
        }));
        return { tools: items, ...rest };
      }
      default:
        return { contents: [{ uri, text }] };
    }
  }

  #isTaught(context: string, kind: string, upstream: string, id: string): boolean {
    return ['everybody', context].some((audience) =>
      this.#taught.has(`${audience} ${kind} ${upstream} ${id}`),
    );
  }

  /** A read that carries the caller's own credentials along is brought to no upstream that is not known to own it. */
  #checkRouted({ upstream, uri = '', madeFor }: Question, caller: Headers): void {
    if (this.#kinds.length === 1) return;
    const carried = ['cookie', 'authorization', 'proxy-authorization', 'x-api-key'].filter(
      (name) => caller[name] !== undefined,
    );
    const isCarried =
      (upstream.auth === 'forward' && carried.includes('authorization')) ||
      carried.some((name) => upstream.forwardHeaders.includes(name));
    if (!isCarried) return;
    const template = uri.replace(/[^/]*$/, '{x}');
    assert.ok(
      this.#isTaught(madeFor, 'resources', upstream.name, uri) ||
        this.#isTaught(madeFor, 'templates', upstream.name, template),
      `${uri} of ${madeFor} reaches ${upstream.name} by what others were taught`,
    );
  }

  #called(kind: Kind, { body, headers }: StreamRequest): Promise<StreamOutcome> {
    this.#guard(() => {
      assert.ok(body instanceof Uint8Array);
      const { params } = JSON.parse(Buffer.from(body).toString()) as {
        params: { name: string; _meta: Record<string, { name: string }> };
      };
      const mark = params._meta[CLIENT_INFO]?.name ?? '';
      const caller = this.#callerOf(mark);
      assert.deepEqual(
        credentialsIn(headers),
        credentialsFor(kind, caller),
        `${kind.name} is told otherwise`,
      );
      if (this.#kinds.length > 1)
        assert.ok(
          this.#isTaught(mark, 'tools', kind.name, params.name),
          `${params.name} of ${mark} is routed by what others were taught`,
        );
      seen.calls++;
    });
    const failure = { kind: 'connect', proxyError: 'connection_refused', detail: '' } as const;
    return Promise.resolve({ kind: 'failure', failure });
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (fault) {
      this.#faults.push(fault);
    }
  }

  // The callers' side.

  #ask(callerAt: number, method: Method, pickAt: number, cursor: string | undefined): void {
    const headers = this.#callers[callerAt % this.#callers.length] ?? {};
    const context = this.#contextOf(headers);
    const asked = this.#paramsOf(method, pickAt);
    const request: Request = {
      number: this.#requests.length,
      caller: callerAt,
      pick: pickAt,
      headers,
      context,
      method,
      uri: 'uri' in asked ? asked.uri : undefined,
      cursor,
      startedAt: ++this.#order,
      startedMs: this.#timeMs,
      controller: new AbortController(),
      done: false,
    };
    this.#requests.push(request);
    const params = {
      ...asked,
      ...(cursor !== undefined && { cursor }),
      _meta: meta({ [CLIENT_INFO]: { name: context, version: String(request.number) } }),
    };
    const name = 'name' in asked ? asked.name : request.uri;
    const exchange: Exchange = {
      signal: request.controller.signal,
      facts: {},
      notify: () => undefined,
    } as Exchange;
    const inbound = {
      route: '/mcp',
      head: readHead(rawHeaders({ ...mirrored(method, name), ...headers })),
      body: { kind: 'whole', bytes: Buffer.from(JSON.stringify(rpc(method, params))) },
    } as const;
    assert.equal(classify(inbound.head, inbound.body).kind, 'request');
    Promise.resolve(this.#fleet.handle(inbound, exchange)).then(
      (reply) => {
        request.done = true;
        if (request.controller.signal.aborted) seen.left++;
        this.#guard(() => this.#checkReply(request, reply));
      },
      (error: Error) => {
        request.done = true;
        this.#faults.push(error);
      },
    );
  }

  #paramsOf(method: Method, at: number): { uri: string } | { name: string } | Record<string, never> {
    const kind = this.#kinds[at % this.#kinds.length] ?? OPEN;
    const own = `of-${Math.floor(at / 7) % this.#contexts.length}`;
    if (method === 'tools/call') return { name: at % 2 === 0 ? `${kind.name}-t` : `${kind.name}-${own}` };
    if (method !== 'resources/read') return {};
    const uris = [
      `res://${kind.name}/1`,
      `res://${kind.name}/1`,
      `priv://${kind.name}/${own}`,
      `tpl://${kind.name}/9`,
      `ptpl://${kind.name}/${own}/9`,
      'res://nowhere/1',
    ];
    return { uri: uris[Math.floor(at / 3) % uris.length] ?? '' };
  }

  #checkReply(request: Request, reply: Reply): void {
    const told = textOf(reply);
    const serials = new Set([...told.matchAll(/<<(\d+)>>/g)].map(([, serial]) => Number(serial)));
    const result = resultOf(told);
    if (typeof result?.nextCursor === 'string')
      this.#cursors.push({ method: request.method, text: result.nextCursor });
    for (const serial of serials) {
      const question = this.#questions[serial];
      assert.ok(question?.landed !== undefined, 'an answer to a question that was not answered');
      checkAudience(this.#questions, request, question, result);
      if (result === undefined) seen.errors++;
      else if (request.method !== 'server/discover') checkTime(this.#questions, request, question, result);
      question.handedMs = this.#timeMs;
      if (request.method === 'resources/read' && question.uri !== undefined)
        this.#taught.add(`${request.context} resources ${question.upstream.name} ${question.uri}`);
    }
    const status = 'headers' in reply ? (reply.headers['cache-status'] ?? '') : '';
    if (status.includes('; hit')) seen.hits++;
    if (status.includes('collapsed')) seen.collapsed++;
    if (status.includes('stale-if-error')) seen.stale++;
    if (request.cursor !== undefined && result !== undefined) seen.continued++;
  }
}

function authOf(auth: Auth) {
  switch (auth) {
    case 'none':
      return { type: 'none' } as const;
    case 'bearer':
      return { type: 'bearer', token: { reveal: () => OWN_TOKEN.slice('Bearer '.length) } as never } as const;
    case 'forward':
      return { type: 'forward', shared: true } as const;
  }
}

/** What of an upstream request's headers says who somebody is. */
function credentialsIn(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => (TELLING as readonly string[]).includes(name)),
  );
}

/** What an upstream may be told of a caller. */
function credentialsFor({ auth, forwardHeaders }: Kind, caller: Headers = {}): Headers {
  const names = [...forwardHeaders, ...(auth === 'forward' ? ['authorization'] : [])];
  const told = names.flatMap((name) => (caller[name] === undefined ? [] : [[name, caller[name]] as const]));
  return Object.fromEntries(auth === 'bearer' ? [['authorization', OWN_TOKEN]] : told);
}

function textOf(reply: Reply): string {
  switch (reply.kind) {
    case 'answer':
      return reply.head + Buffer.concat(reply.tail).toString('utf8');
    case 'refused':
      return JSON.stringify(reply.refusal);
    default:
      return '';
  }
}

function resultOf(text: string): Result | undefined {
  return (JSON.parse(text === '' ? '{}' : text) as { result?: Result }).result;
}
