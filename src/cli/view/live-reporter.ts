import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import { createOverview } from "../../runtime/index.ts";
import { frameLines } from "./live-frame.ts";
import { LiveScreen, type TerminalStream } from "./live-screen.ts";
import { limitRedraws } from "./redraw-limit.ts";
import { endingLines, type Reporter } from "./reporter.ts";
import type { Paint } from "./styles.ts";

export interface LiveReporterOptions {
  readonly stream: TerminalStream;
  readonly clock: Clock;
  readonly paint: Paint;
  readonly rootAgentId: string;
  /** The accounts of the tree as they stand; asked for before each drawing. */
  readonly accounts: () => Promise<readonly Account[]>;
}

/** Draws the tree of agents over itself at the end of the terminal, and leaves the answer and a table behind. */
export function liveReporter({ stream, clock, paint, rootAgentId, accounts }: LiveReporterOptions): Reporter {
  const screen = new LiveScreen(stream);
  const overview = createOverview();
  let header: readonly string[] = [];
  let notice: string | undefined;
  let known: readonly Account[] = [];
  let isAsking = false;

  /** The drawing never waits for the store: it shows the accounts as they were a moment ago. */
  async function refreshAccounts(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    try {
      known = await accounts();
    } catch {
      // A store that cannot be read fails the job itself; the view goes on with what it has.
    } finally {
      isAsking = false;
    }
  }

  const redraws = limitRedraws(clock, () => {
    void refreshAccounts();
    const agents = Object.values(overview.getSnapshot().context.agents);
    const frame = { agents, rootAgentId, accounts: known, header, notice, now: clock.now(), ...screen.size };
    screen.draw(frameLines(frame, paint));
  });

  return {
    begin(lines) {
      header = lines;
      redraws.request();
    },
    past: (events) => events.forEach((event) => overview.trigger.noted({ event })),
    event(event) {
      overview.trigger.noted({ event });
      redraws.request();
    },
    notice(text) {
      notice = text;
      redraws.request();
    },
    hold() {
      screen.suspend();
      return () => {
        screen.resume();
        redraws.request();
      };
    },
    end(ending) {
      this.close();
      stream.write(`${[...header, "", ...endingLines(ending)].join("\n")}\n`);
    },
    close() {
      redraws.stop();
      screen.close();
    },
  };
}
