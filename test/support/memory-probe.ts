/**
 * Loaded into a gateway (`NODE_OPTIONS=--import`): on SIGUSR2 it collects garbage and says how much is left, as a line
 * `memory BYTES` of heap and external memory together.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
process.on('SIGUSR2', () => {
  gc();
  setImmediate(() => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    process.stderr.write(`\nmemory ${heapUsed + external}\n`);
  });
});
