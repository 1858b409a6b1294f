/**
 * Ends this process of a chaos run with its parent, however the parent died. A process that was started by hand stays. SIGTERM
 * ends the process at once unless `onTerminate` is false.
 */
export function endWithParent({ onTerminate = true }: { readonly onTerminate?: boolean } = {}): void {
  if (onTerminate) process.on("SIGTERM", () => process.exit(0));
  if (process.send === undefined) return;
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C reaches the whole terminal group; the parent stops this process when its last call is done.
  process.on("SIGINT", () => undefined);
  if (!process.connected) process.exit(0);
}
