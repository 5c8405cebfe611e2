/**
 * Demo server: cities and their weather. Templates with completion, a short public ttl, and a tool that reports progress.
 *
 * The weather is invented, but moves with the clock: two reads of the same weather show whether it was served again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import {
  fromJsonSchema,
  McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { type DemoServer, runAsScript, type StartOptions, serve } from './serve.ts';

/** How long weather may be kept. */
export const WEATHER_TTL_MS = 5_000;
/** The template that the tests and the demo complete. */
export const WEATHER_TEMPLATE = 'city://{name}/weather';
/** The pause before each step of a forecast, long enough to see that progress is not held back. */
const FORECAST_STEP_MS = 150;

/** What `start` takes. */
export interface CityOptions extends StartOptions {
  /** The clock that the weather follows, in milliseconds since 1970. */
  readonly now?: () => number;
}

interface City {
  readonly name: string;
  readonly country: string;
  readonly latitude: number;
  readonly population: number;
}

const CITIES: readonly City[] = [
  { name: 'accra', country: 'Ghana', latitude: 5.6, population: 2_660_000 },
  { name: 'auckland', country: 'New Zealand', latitude: -36.8, population: 1_530_000 },
  { name: 'bergen', country: 'Norway', latitude: 60.4, population: 291_000 },
  { name: 'cusco', country: 'Peru', latitude: -13.5, population: 428_000 },
  { name: 'kyoto', country: 'Japan', latitude: 35, population: 1_440_000 },
  { name: 'lisbon', country: 'Portugal', latitude: 38.7, population: 546_000 },
  { name: 'montreal', country: 'Canada', latitude: 45.5, population: 1_760_000 },
  { name: 'nairobi', country: 'Kenya', latitude: -1.3, population: 4_400_000 },
  { name: 'odense', country: 'Denmark', latitude: 55.4, population: 183_000 },
  { name: 'osaka', country: 'Japan', latitude: 34.7, population: 2_750_000 },
  { name: 'oslo', country: 'Norway', latitude: 59.9, population: 709_000 },
  { name: 'quito', country: 'Ecuador', latitude: -0.2, population: 1_980_000 },
  { name: 'tallinn', country: 'Estonia', latitude: 59.4, population: 457_000 },
  { name: 'valparaiso', country: 'Chile', latitude: -33, population: 296_000 },
];
const byName = new Map(CITIES.map((city) => [city.name, city]));
const namesLike = (value: string): string[] =>
  CITIES.map(({ name }) => name).filter((name) => name.startsWith(value.toLowerCase()));

/** The URIs of all listed cities, in the order of the list. */
export const cityUris: readonly string[] = CITIES.map(({ name }) => `city://${name}`);

const DAY_MS = 86_400_000;
const SKIES = ['clear', 'light cloud', 'overcast', 'rain', 'fog'] as const;

function weatherOf(city: City, at: number) {
  const warmth = 28 - Math.abs(city.latitude) / 2.5;
  const swing = Math.sin((at / DAY_MS) * 2 * Math.PI) * 5;
  const sky = SKIES[(Math.floor(at / 3_600_000) + city.name.length) % SKIES.length] as string;
  return { celsius: Math.round((warmth + swing) * 10) / 10, sky };
}

const hourHint = { ttlMs: 3_600_000, cacheScope: 'public' } as const;
const weatherHint = { ttlMs: WEATHER_TTL_MS, cacheScope: 'public' } as const;

const FORECAST_INPUT = fromJsonSchema<{ city: string; days?: number }>({
  type: 'object',
  properties: {
    city: { type: 'string', description: 'The name of a listed city' },
    days: { type: 'integer', minimum: 1, maximum: 7, description: 'How many days ahead, 3 unless said' },
  },
  required: ['city'],
  additionalProperties: false,
});
const FORECAST_STEPS = ['observations gathered', 'model run', 'forecast written'] as const;

function build(now: () => number): McpServer {
  const mcp = new McpServer(
    { name: 'city', title: 'Cities and weather', version: '1.0.0' },
    {
      capabilities: { resources: {}, tools: {}, completions: {} },
      instructions: 'Read city://{name} for a city, city://{name}/weather for its weather now.',
      cacheHints: {
        'server/discover': hourHint,
        'resources/list': hourHint,
        'resources/templates/list': hourHint,
        'tools/list': hourHint,
      },
    },
  );

  mcp.registerResource(
    'city',
    new ResourceTemplate('city://{name}', {
      list: () => ({ resources: listed }),
      complete: { name: namesLike },
    }),
    { title: 'A city', mimeType: 'application/json', cacheHint: hourHint },
    (uri, { name }) => json(uri.href, find(uri.href, name)),
  );
  mcp.registerResource(
    'weather',
    new ResourceTemplate(WEATHER_TEMPLATE, { list: undefined, complete: { name: namesLike } }),
    { title: 'The weather in a city', mimeType: 'application/json', cacheHint: weatherHint },
    (uri, { name }) => {
      const at = now();
      const city = find(uri.href, name);
      return json(uri.href, {
        city: city.name,
        observedAt: new Date(at).toISOString(),
        ...weatherOf(city, at),
      });
    },
  );
  mcp.registerTool(
    'forecast',
    {
      title: 'Forecast',
      description: 'The weather of the coming days, with progress on the way',
      inputSchema: FORECAST_INPUT,
    },
    async ({ city: name, days = 3 }, ctx) => {
      const city = byName.get(name.toLowerCase());
      if (city === undefined)
        return { isError: true, content: [{ type: 'text', text: `No such city: ${name}` }] };
      await reportSteps(ctx);
      const lines = Array.from({ length: days }, (_, index) => {
        const { celsius, sky } = weatherOf(city, now() + (index + 1) * (DAY_MS + 7_200_000));
        return `day ${index + 1}: ${celsius} °C, ${sky}`;
      });
      return { content: [{ type: 'text', text: `${city.name}\n${lines.join('\n')}` }] };
    },
  );
  return mcp;
}

const listed = CITIES.map(({ name, country }) => ({
  uri: `city://${name}`,
  name,
  description: `${name}, ${country}`,
  mimeType: 'application/json',
}));

function find(uri: string, name: string | string[] | undefined): City {
  const city = typeof name === 'string' ? byName.get(name) : undefined;
  if (city === undefined) throw new ResourceNotFoundError(uri);
  return city;
}

const json = (uri: string, value: unknown) => ({
  contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(value) }],
});

/** Three notifications, each after a pause; a caller who gave no token gets the pauses alone. */
async function reportSteps({ mcpReq }: ServerContext): Promise<void> {
  const progressToken = mcpReq._meta?.progressToken;
  for (const [index, message] of FORECAST_STEPS.entries()) {
    await wait(FORECAST_STEP_MS, undefined, { signal: mcpReq.signal });
    if (progressToken === undefined) continue;
    const params = { progressToken, progress: index + 1, total: FORECAST_STEPS.length, message };
    await mcpReq.notify({ method: 'notifications/progress', params });
  }
}

/** Starts the city server on loopback. */
export const start = ({ now = Date.now, ...where }: CityOptions = {}): Promise<DemoServer> =>
  serve({ build: () => build(now), ...where });

await runAsScript(import.meta.url, start);
