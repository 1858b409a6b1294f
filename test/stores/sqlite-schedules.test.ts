import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { scheduleOf } from "../contracts/stores-schedules.contract.ts";
import { temporaryFile } from "./temporary-file.ts";

test("a damaged schedule is never due, and delays no other", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  for (const key of ["a", "b"]) await stores.putSchedule(scheduleOf(key, { nextAt: NOW }), null);
  const database = new DatabaseSync(path);
  database.exec("UPDATE schedules SET schedule = json_set(schedule, '$.times', 'soon') WHERE key = 'a'");
  database.close();
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const due = await stores.dueSchedules(TENANT, NOW, 10);
  expect(due.map(({ key }) => key)).toEqual(["b"]);
  expect(String(warned.mock.calls[0]?.[0])).toContain("it never fires");
  warned.mockRestore();
  await expect(stores.schedule(TENANT, "a")).rejects.toThrow("a schedule");
  await stores.close();
});
