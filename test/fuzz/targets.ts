/** Everything that takes what others write, each with what must hold of it. */
import type { Target } from './engine.ts';
import { cacheKeys, callerContext } from './targets/cache-key.ts';
import { configFile } from './targets/config.ts';
import { cursor } from './targets/cursor.ts';
import { flowScanner, resultFlow } from './targets/flow.ts';
import { listItem } from './targets/item.ts';
import { answerReader, jsonWatch, scanner } from './targets/json.ts';
import { laneShape } from './targets/lane.ts';
import { noticeReader } from './targets/notice.ts';
import { globs, templates } from './targets/pattern.ts';
import { classifier, headerCodec, repeats } from './targets/request.ts';
import { sseFramer } from './targets/sse.ts';

export const TARGETS: readonly Target[] = [
  classifier,
  repeats,
  headerCodec,
  laneShape,
  scanner,
  answerReader,
  jsonWatch,
  flowScanner,
  resultFlow,
  sseFramer,
  noticeReader,
  cursor,
  cacheKeys,
  callerContext,
  templates,
  globs,
  configFile,
  listItem,
] as unknown as readonly Target[];
