/** Every switch of the simulator. */
import { endings, http, silences } from './connections.ts';
import { events } from './events.ts';
import { largeReads } from './large.ts';
import { lists } from './lists.ts';
import { hints, messages } from './messages.ts';
import { codings, types } from './representations.ts';
import type { Row } from './row.ts';
import { statuses } from './statuses.ts';

export const ROWS: readonly Row[] = [
  ...silences,
  ...endings,
  ...http,
  ...types,
  ...codings,
  ...events,
  ...statuses,
  ...messages,
  ...hints,
  ...lists,
  ...largeReads,
];
