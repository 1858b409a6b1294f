import { existsSync } from "node:fs";

/** The secret that callers send as `authorization: Bearer …`. */
export function serveToken(): string {
  if (existsSync(".env")) process.loadEnvFile(".env");
  const token = process.env["TROUPE_SERVE_TOKEN"];
  if (token) return token;
  throw new Error('Set TROUPE_SERVE_TOKEN: echo "TROUPE_SERVE_TOKEN=$(openssl rand -hex 24)" >> .env');
}
