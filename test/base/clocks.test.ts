import { vi } from "vitest";
import { createSystemClock } from "../../src/base/index.ts";
import { checkedPorts } from "../../src/runtime/core/checked-ports.ts";
import { StoreClock } from "../../src/runtime/core/runtime-core.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { testClock } from "../contracts/clocks.contract.ts";

const start = Date.UTC(2026, 0, 1);

testClock("of the system", () => {
  vi.useFakeTimers({ now: start });
  return {
    clock: createSystemClock(),
    advance: (ms) => void vi.advanceTimersByTime(ms),
    waiting: () => vi.getTimerCount(),
    dispose: () => void vi.useRealTimers(),
  };
});

testClock("that a test moves", () => {
  const clock = createFakeClock(start);
  return { clock, advance: (ms) => clock.advance(ms), waiting: () => clock.pendingTimers };
});

testClock("of a user, as a runtime sees it", () => {
  const clock = createFakeClock(start);
  return {
    clock: new StoreClock(checkedPorts({ clock }).clock),
    advance: (ms) => clock.advance(ms),
    waiting: () => clock.pendingTimers,
  };
});
