// troupe runs as it is installed, not bundled: it loads SQLite and other parts on first use.
export default { serverExternalPackages: ["troupe"] };
