/**
 * The program run from its sources as a real process: `pico serve` on free loopback ports, and commands
 * that end by themselves. Whoever starts a node stops it.
 */
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));
const program = [process.execPath, join(root, "src/cli/main.ts")];

export interface CommandEnd {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs one command to its end. */
export async function runCommand(words: readonly string[]): Promise<CommandEnd> {
  const child = Bun.spawn([...program, ...words], { cwd: "/", env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { exitCode, output, errors };
}

export interface ServingNode {
  readonly picoUrl: string;
  readonly durableStreamsUrl: string;
  /** Stops it gracefully; resolves with its exit code. */
  stop(): Promise<number>;
  /** Ends it at once, as `kill -9` does. */
  kill(): Promise<number>;
}

/** Starts a node and waits until it serves. Throws with what it wrote if it ends before. */
export async function serveNode(dataDirectory: string, flags: readonly string[] = []): Promise<ServingNode> {
  const words = ["serve", "--data-dir", dataDirectory, "--listen", "127.0.0.1:0", "--ds-listen", "127.0.0.1:0", "--no-admin", ...flags];
  const child = Bun.spawn([...program, ...words], { cwd: "/", env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  const errors = child.stderr.text();
  let said = "";
  const addresses = await new Promise<{ picoUrl: string; durableStreamsUrl: string } | null>((resolve) => {
    const read = async () => {
      // Read to the end, so that the node never waits for a full pipe.
      for await (const chunk of child.stdout) {
        said += Buffer.from(chunk).toString("utf8");
        const picoUrl = /^serving on (http:\/\/\S+)/m.exec(said)?.[1];
        const durableStreamsUrl = /^durable streams on (http:\/\/\S+)/m.exec(said)?.[1];
        if (picoUrl !== undefined && durableStreamsUrl !== undefined) resolve({ picoUrl, durableStreamsUrl });
      }
      resolve(null);
    };
    void read();
  });
  if (addresses === null) throw new Error(`the node ended before it served: ${await errors}`);
  const end = (signal: "SIGTERM" | "SIGKILL") => {
    child.kill(signal);
    return child.exited;
  };
  return { ...addresses, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}

/** Variables of the person who runs the tests must not reach the program. */
function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith("PICO_"));
  return Object.fromEntries(entries) as Record<string, string>;
}
