/**
 * How the demo speaks: numbered steps, aligned rows, claims that were checked. Colour only where a person looks.
 */

/** The demo's voice and its tally. */
export interface Report {
  heading(text: string): void;
  step(title: string): void;
  row(label: string, value: string): void;
  /** Prints whether something held; one that did not makes the demo fail. */
  claim(text: string, holds: boolean, seen?: string): void;
  /** The same at the left edge, for what people search the output for. */
  verdict(text: string, holds: boolean): void;
  /** A command to copy: alone on its line, from the left edge. */
  command(text: string): void;
  line(text: string): void;
  readonly passed: number;
  readonly failed: number;
}

interface ReportOptions {
  readonly write: (line: string) => void;
  readonly colour: 'on' | 'off';
}

const LABEL_WIDTH = 14;

/** Colour is on for a terminal, unless NO_COLOR is set to anything (no-color.org). */
export const colourFor = (stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): 'on' | 'off' =>
  stream.isTTY && (env.NO_COLOR ?? '') === '' ? 'on' : 'off';

/** A report that writes line by line. */
export function createReport({ write, colour }: ReportOptions): Report {
  const style = (code: string) => (text: string) =>
    colour === 'on' ? `\u001B[${code}m${text}\u001B[0m` : text;
  const bold = style('1');
  const dim = style('2');
  const red = style('31');
  const green = style('32');
  let steps = 0;
  let passed = 0;
  let failed = 0;
  const tally = (holds: boolean): string => {
    if (holds) passed += 1;
    else failed += 1;
    return holds ? green('ok') : red('FAILED');
  };
  return {
    heading: (text) => write(bold(text)),
    step(title) {
      steps += 1;
      write('');
      write(bold(`${steps}  ${title}`));
    },
    row: (label, value) => write(`   ${dim(label.padEnd(LABEL_WIDTH))}${value}`),
    claim(text, holds, seen) {
      write(`   ${text}: ${tally(holds)}${holds || seen === undefined ? '' : `  (saw ${seen})`}`);
    },
    verdict: (text, holds) => write(`${text}: ${tally(holds)}`),
    command: (text) => write(dim(text)),
    line: (text) => write(text),
    get passed() {
      return passed;
    },
    get failed() {
      return failed;
    },
  };
}
