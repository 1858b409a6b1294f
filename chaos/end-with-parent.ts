/**
 * Ends this process of a chaos run when its parent has exited for any reason. A process started by hand keeps running.
 * SIGTERM ends the process at once unless `onTerminate` is false.
 */
export function endWithParent({ onTerminate = true }: { readonly onTerminate?: boolean } = {}): void {
  if (onTerminate) process.on("SIGTERM", () => process.exit(0));
  if (process.send === undefined) return;
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C is sent to the whole process group; the parent stops this process after its last call.
  process.on("SIGINT", () => undefined);
  if (!process.connected) process.exit(0);
}
