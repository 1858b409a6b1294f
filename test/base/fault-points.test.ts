import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { armFaultPoints, faultPoint } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

const module = new URL("../../src/base/index.ts", import.meta.url).href;
const program = `import { faultPoint } from "${module}";
for (let hit = 1; hit <= 3; hit += 1) { process.stdout.write(String(hit)); faultPoint("commit.acknowledged"); }`;

function run(fault: string) {
  const env = { ...process.env, TROUPE_FAULT: fault };
  return spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    env,
    encoding: "utf8",
    timeout: 30_000,
  });
}

describe("fault points", () => {
  it("do nothing unless armed (1)", () => {
    expect(() => faultPoint("nobody.armed.this")).not.toThrow();
  });

  it("fire once, at the k-th hit, until disarmed (2)", () => {
    let strikes = 0;
    const disarm = armFaultPoints([{ name: "tool.started", hit: 2, action: () => (strikes += 1) }]);
    const counts = [1, 2, 3].map(() => {
      faultPoint("tool.started");
      faultPoint("tool.settled");
      return strikes;
    });
    expect(counts).toEqual([0, 1, 1]);
    disarm();
    const again = armFaultPoints([{ name: "tool.started", hit: 1, action: () => (strikes += 1) }]);
    again();
    faultPoint("tool.started");
    expect(strikes).toBe(1);
  });

  it("can throw at the call", () => {
    const disarm = armFaultPoints([
      {
        name: "commit.sent",
        hit: 1,
        action: () => {
          throw new Error("connection lost");
        },
      },
    ]);
    expect(() => faultPoint("commit.sent")).toThrow("connection lost");
    disarm();
  });

  it("kill the process at the hit given in the environment", () => {
    const killed = run("other.point:1,commit.acknowledged:2");
    expect([killed.signal, killed.stdout]).toEqual(["SIGKILL", "12"]);
    const survived = run("commit.acknowledged:4");
    expect([survived.status, survived.stdout]).toEqual([0, "123"]);
  });

  it.each(["", "name", "name:0", "name:-1", "name:x", "Na me:1", ":1"])("refuse the form %j", (spec) => {
    expect(() => armFaultPoints(spec)).toThrow(InvalidInputError);
  });

  it("refuse an impossible hit", () => {
    expect(() => armFaultPoints([{ name: "a", hit: 0 }])).toThrow(InvalidInputError);
  });
});
