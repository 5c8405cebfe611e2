#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { runCli } from './cli/run.ts';

// V8 guesses which objects will grow old and makes them old at once. Of what belongs to a request it guesses wrong,
// and all of the request then waits for the next full collection: half of the collector's work for a cache hit.
setFlagsFromString('--no-allocation-site-pretenuring');
process.exitCode = await runCli(process.argv.slice(2), process);
