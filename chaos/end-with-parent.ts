/**
 * For processes of a chaos run: they end with whoever forked them, however that one died. Run by hand, they stay. SIGTERM ends
 * them at once, unless they see to it themselves.
 */
export function endWithParent({ onTerminate = true }: { readonly onTerminate?: boolean } = {}): void {
  if (onTerminate) process.on("SIGTERM", () => process.exit(0));
  if (process.send === undefined) return;
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C reaches the whole terminal group; whoever forked this process stops it when its last call is done.
  process.on("SIGINT", () => undefined);
  if (!process.connected) process.exit(0);
}
