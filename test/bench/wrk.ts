/** wrk (Debian) as the load generator: it costs the client core least. A script of its own checks every answer. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pinned } from './children.ts';
import { type Job, type Loaded, takeSerials } from './job.ts';
import { SERIAL } from './wire.ts';

const run = promisify(execFile);

/** More than any server here answers in one round. */
const MOST_REQUESTS = 1_000_000;

export async function wrk(job: Job, seconds: number): Promise<Loaded> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  try {
    const script = join(folder, 'job.lua');
    writeFileSync(script, scriptOf(job), 'latin1');
    const flags = ['-t1', `-c${job.connections}`, `-d${seconds}s`, '--timeout', '20s', '-s', script];
    const [file, args] = pinned('wrk', [...flags, `http://127.0.0.1:${job.port}/`], 'client');
    const { stdout } = await run(file, args);
    const line = /^RESULT (.*)$/m.exec(stdout)?.[1];
    if (line === undefined) throw new Error(`wrk said no result:\n${stdout}`);
    return JSON.parse(line) as Loaded;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A Lua string of exactly these bytes. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"\r\n]/g, (char) => `\\${String(char.charCodeAt(0)).padStart(3, '0')}`)}"`;
}

function scriptOf({ requests, expected }: Job): string {
  const { prefix, suffix, slack, header } = expected;
  const fewest = prefix.length + suffix.length;
  const varies = requests.some((text) => text.includes(SERIAL));
  const pieces = requests.map((text) => `{${text.split(SERIAL).map(quoted).join(',')}}`);
  return `
local requests = {${pieces.join(',\n')}}
local varies = ${varies}
local serial, turn, count = ${varies ? takeSerials(MOST_REQUESTS) : 0}, 0, ${requests.length}
local prefix, tail = ${quoted(prefix)}, ${quoted(suffix)}
wrong, why = 0, ""
local threads = {}
function setup(thread) threads[#threads + 1] = thread end
function request()
  turn = turn % count + 1
  local parts = requests[turn]
  if not varies then return parts[1] end
  serial = serial + 1
  return table.concat(parts, tostring(serial))
end
local function bad(what) wrong = wrong + 1; if why == "" then why = what end end
function response(status, headers, body)
  if status ~= 200 then return bad("status " .. status) end
  ${header === undefined ? '' : `if not string.find(headers[${quoted(header[0])}] or "", ${quoted(header[1])}, 1, true) then return bad("header ${header[0]}") end`}
  local size = #body
  if size < ${fewest} or size > ${fewest + slack} then return bad("size " .. size) end
  if string.sub(body, 1, #prefix) ~= prefix then return bad("beginning") end
  if string.sub(body, -#tail) ~= tail then return bad("end") end
end
function done(summary, latency)
  local wrongs, whys = 0, ""
  for _, thread in ipairs(threads) do
    wrongs = wrongs + thread:get("wrong")
    whys = whys .. thread:get("why")
  end
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  if broken > 0 then whys = whys .. " connections broke" end
  io.write(string.format('\\nRESULT {"count":%d,"wrong":%d,"why":"%s","seconds":%f,"p50Us":%d,"p99Us":%d}\\n',
    summary.requests, wrongs + broken, whys, summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
`;
}
