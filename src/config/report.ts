/** What the checks between pieces say, and to whom. */
import type { Path } from './problems.ts';

/** Tells one finding. `said` is how a text was written in the file: a message never holds an expanded value. */
export interface Report {
  error(path: Path, message: string): void;
  /** For what is wrong with the key at `path` rather than with its value. */
  errorAtKey(path: Path, message: string): void;
  warn(path: Path, message: string): void;
  said(path: Path): string;
  /** True when something from the environment or a file was put in. */
  isExpanded(path: Path): boolean;
  has(path: Path): boolean;
}
