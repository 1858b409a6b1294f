// A process that opens a SQLite file and closes it.
import { sqliteStores } from "troupe/stores/sqlite";

await sqliteStores(process.argv[2] ?? "").close();
