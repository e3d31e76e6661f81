/**
 * Makes a fresh clone runnable on a machine that has Node and npm only (or Bun only), then hands over.
 * Plain JavaScript without dependencies, for Node 18 and later: nothing is installed when it runs.
 *
 *   node scripts/bootstrap.mjs                      installs what is missing, nothing else
 *   node scripts/bootstrap.mjs --print-bun          the same, and prints the path of Bun
 *   node scripts/bootstrap.mjs FILE [ARGUMENT...]   the same, then runs `bun run FILE ARGUMENT...`
 *
 * Order: Bun of the one version that the project is built with (the running one, the one on the PATH,
 * or a copy under `.cache/`), then the packages of `bun.lock`. What is there is not touched again, so a
 * later start needs no network. Notes go to stderr; stdout belongs to the program that is started.
 *
 * package.json calls this file by `exec`: npm sends a signal to the shell between them, which would die of
 * it alone and leave the program behind. `cmd.exe` knows no `exec`: on Windows call this file directly.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const isWindows = process.platform === "win32";
const bunVersion = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.bun;
const bunHome = join(root, ".cache", `bun-${bunVersion}`);
const bunCached = join(bunHome, "node_modules", "bun", "bin", "bun.exe");

/** Forwarded to the program that runs: whoever stops this process means that one. */
const forwardedSignals = isWindows ? ["SIGINT", "SIGTERM"] : ["SIGINT", "SIGTERM", "SIGHUP"];

class BootstrapError extends Error {}

function note(text) {
  process.stderr.write(`bootstrap: ${text}\n`);
}

/** Runs a command to its end with its output on stderr; throws with `remedy` if it fails. */
function runStep(command, commandArguments, options, remedy) {
  const result = spawnSync(command, commandArguments, { stdio: ["ignore", 2, 2], ...options });
  if (result.error) throw new BootstrapError(`cannot run ${command}: ${result.error.message}; ${remedy}`);
  if (result.status !== 0) throw new BootstrapError(`${command} ${commandArguments[0]} failed; ${remedy}`);
}

/** Whether this file is a Bun that runs here and has the version wanted. */
function isWantedBun(path) {
  const result = spawnSync(path, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return result.status === 0 && result.stdout.trim() === bunVersion;
}

/** The path of a Bun of the version wanted, installed under `.cache/` if the machine has none. */
function ensureBun() {
  if (process.versions.bun === bunVersion) return process.execPath;
  if (existsSync(bunCached) && isWantedBun(bunCached)) return bunCached;
  if (isWantedBun("bun")) return "bun";
  installBun();
  return bunCached;
}

/**
 * Installs npm's `bun` package beside the project's own packages. npm may skip install scripts, so the
 * package's script, which puts the platform's executable in place, is called here and its result checked.
 * The finished folder is moved into place, so that an interrupted install leaves nothing half done.
 */
function installBun() {
  note(`installing Bun ${bunVersion} into ${relative(process.cwd(), bunHome) || bunHome}`);
  const workHome = `${bunHome}.${process.pid}`;
  mkdirSync(workHome, { recursive: true });
  try {
    writeFileSync(join(workHome, "package.json"), '{ "private": true }\n');
    const npmArguments = ["install", "--prefix", workHome, "--no-package-lock", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
    runNpm([...npmArguments, `bun@${bunVersion}`], workHome);
    const packageHome = join(workHome, "node_modules", "bun");
    runStep(process.execPath, ["install.js"], { cwd: packageHome }, "see its output above");
    if (!isWantedBun(join(packageHome, "bin", "bun.exe"))) {
      throw new BootstrapError(
        `the installed Bun does not run here as version ${bunVersion}; install Bun ${bunVersion} by hand and put it on the PATH`,
      );
    }
    rmSync(bunHome, { recursive: true, force: true });
    renameSync(workHome, bunHome);
  } finally {
    rmSync(workHome, { recursive: true, force: true });
  }
}

/** npm as the parent process started it, else the one on the PATH. */
function runNpm(npmArguments, cwd) {
  const remedy = `check that npm reaches its registry, or install Bun ${bunVersion} by hand and put it on the PATH`;
  const npmScript = process.env.npm_execpath;
  if (npmScript !== undefined && /npm-cli\.c?js$/.test(npmScript)) {
    runStep(process.execPath, [npmScript, ...npmArguments], { cwd }, remedy);
  } else {
    runStep("npm", npmArguments, { cwd, shell: isWindows }, remedy);
  }
}

/** Installs the packages of the lock file, unless the mark of an earlier run says that they are there. */
function ensurePackages(bun) {
  const markPath = join(root, "node_modules", ".installed");
  const hash = createHash("sha256").update(`${process.platform} ${process.arch} ${bunVersion}\n`);
  for (const file of ["package.json", "bun.lock"]) hash.update(readFileSync(join(root, file)));
  const mark = hash.digest("hex");
  if (existsSync(markPath) && readFileSync(markPath, "utf8") === mark) return;
  note("installing packages");
  const remedy = "check the network; if package.json was changed, run `bun install` to bring bun.lock up to date";
  runStep(bun, ["install", "--frozen-lockfile"], { cwd: root }, remedy);
  linkBun(bun);
  writeFileSync(markPath, mark);
}

/** Puts a cached Bun where package scripts and editors look for executables. */
function linkBun(bun) {
  if (isWindows || bun !== bunCached) return;
  const linkHome = join(root, "node_modules", ".bin");
  mkdirSync(linkHome, { recursive: true });
  rmSync(join(linkHome, "bun"), { force: true });
  symlinkSync(relative(linkHome, bun), join(linkHome, "bun"));
}

/** Runs the program with this process's streams and signals, and exits as it does. */
function handOver(bun, programArguments) {
  const child = spawn(bun, ["run", ...programArguments], { stdio: "inherit" });
  for (const signal of forwardedSignals) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`cannot run ${bun}: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exit(signal === null ? (code ?? 1) : 128 + (constants.signals[signal] ?? 0));
  });
}

function fail(message) {
  process.stderr.write(`bootstrap: ${message}\n`);
  process.exit(1);
}

try {
  const bun = ensureBun();
  ensurePackages(bun);
  const [first, ...rest] = process.argv.slice(2);
  if (first === "--print-bun") process.stdout.write(`${bun}\n`);
  else if (first !== undefined) handOver(bun, [resolve(root, first), ...rest]);
} catch (error) {
  if (!(error instanceof BootstrapError)) throw error;
  fail(error.message);
}
