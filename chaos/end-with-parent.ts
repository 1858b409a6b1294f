/** For servers of a chaos run: they end with whoever forked them, however that one died. Run by hand, they stay. */
export function endWithParent(): void {
  process.on("SIGTERM", () => process.exit(0));
  if (process.send === undefined) return;
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C reaches the whole terminal group; whoever forked this process stops it when its last call is done.
  process.on("SIGINT", () => undefined);
  if (!process.connected) process.exit(0);
}
