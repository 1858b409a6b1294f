/**
 * The API report: the exports of the package's entries with all referenced types, as API Extractor reads them from the
 * built declarations. It is committed, so that changes of public types are visible in review.
 *
 *     node scripts/api-report.ts           # checks that the report is current
 *     node scripts/api-report.ts --write   # updates the report
 *
 * Both need the declarations in dist: `npm run build`.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { Extractor, ExtractorConfig, type IConfigFile } from "@microsoft/api-extractor";
import { entryFiles, type Manifest, publicEntries, readManifest } from "./manifest.ts";
import { repositoryRoot } from "./run-command.ts";

const reportPath = join(repositoryRoot, "api", "troupe.api.md");

/** One module with each entry as a namespace, so that types shared by several entries appear once in the report. */
function entriesModule(manifest: Manifest, folder: string): string {
  const files = entryFiles(manifest, "types").map((file) => join(repositoryRoot, file));
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length > 0) throw new Error(`${missing[0]} is missing; run npm run build first.`);
  const lines = publicEntries(manifest).map((entry, index) => {
    const path = relative(folder, files[index] ?? "").replace(/\.d\.ts$/, ".js");
    return `export * as ${entry.replaceAll(/\W/g, "_")} from "${path}";\n`;
  });
  const path = join(folder, "entries.d.ts");
  writeFileSync(path, lines.join(""));
  return path;
}

/** The report generated from the built declarations. */
function currentReport(): string {
  // Must be inside the repository, because API Extractor treats declarations elsewhere as another package's.
  mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
  const folder = mkdtempSync(join(repositoryRoot, ".troupe", "api-"));
  const silent = { logLevel: "none", addToApiReportFile: false };
  try {
    const entries = entriesModule(readManifest(), folder);
    const compilerOptions = {
      target: "es2024",
      module: "nodenext",
      moduleResolution: "nodenext",
      strict: true,
      skipLibCheck: true,
      types: ["node"],
    };
    const configObject = {
      projectFolder: repositoryRoot,
      mainEntryPointFilePath: entries,
      compiler: { overrideTsconfig: { compilerOptions, files: [entries] } },
      apiReport: {
        enabled: true,
        reportFileName: "troupe.api.md",
        reportFolder: folder,
        reportTempFolder: join(folder, "temp"),
        includeForgottenExports: true,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages: {
        compilerMessageReporting: { default: silent },
        extractorMessageReporting: { default: silent, "ae-forgotten-export": silent },
        tsdocMessageReporting: { default: silent },
      },
    };
    const config = ExtractorConfig.prepare({
      configObject: configObject as IConfigFile,
      configObjectFullPath: undefined,
      packageJsonFullPath: join(repositoryRoot, "package.json"),
    });
    Extractor.invoke(config, {
      localBuild: true,
      messageCallback: (message) => {
        message.handled = true;
      },
    });
    return readFileSync(config.reportFilePath, "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first difference between the committed report and the built declarations; `undefined` if there is none. */
function apiReportFault(): string | undefined {
  const committed = existsSync(reportPath) ? readFileSync(reportPath, "utf8").split("\n") : [];
  const current = currentReport().split("\n");
  const line = Array.from({ length: Math.max(committed.length, current.length) }).findIndex(
    (_, index) => committed[index] !== current[index],
  );
  if (line < 0) return undefined;
  const path = relative(repositoryRoot, reportPath);
  return (
    `The public types differ from ${path}, first in line ${line + 1}:\n- ${committed[line] ?? ""}\n+ ${current[line] ?? ""}\n` +
    "If the change is intended, run npm run build:api and commit the report."
  );
}

if (process.argv.includes("--write")) {
  const report = currentReport();
  mkdirSync(dirname(reportPath), { recursive: true });
  writeFileSync(reportPath, report);
} else {
  const fault = apiReportFault();
  if (fault !== undefined) process.exitCode = 1;
  process.stdout.write(fault === undefined ? "The API report is current.\n" : `${fault}\n`);
}
