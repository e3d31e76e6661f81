/** A node of a test: a folder and ports of its own, and whatever process runs there ends with the test. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HttpAnswer, HttpConnection, type HttpRequest } from "./http-connection.ts";
import { EXECUTABLE, type FailedStart, freePorts, NodeProcess, type Ports, type Program, refusedStart } from "./node-process.ts";

/** `PICO_TEST_PROGRAM` names another executable than `dist/pico`. */
export const program: Program = process.env.PICO_TEST_PROGRAM === undefined ? EXECUTABLE : [process.env.PICO_TEST_PROGRAM];

export class TestNode {
  readonly folder: string;
  readonly dataDirectory: string;
  readonly ports: Ports;
  #process: NodeProcess | null = null;
  readonly #connection: HttpConnection;
  readonly #durableStreams: HttpConnection;

  private constructor(folder: string, dataDirectory: string, ports: Ports) {
    this.folder = folder;
    this.dataDirectory = dataDirectory;
    this.ports = ports;
    this.#connection = new HttpConnection(ports.pico);
    this.#durableStreams = new HttpConnection(ports.durableStreams);
  }

  /** Its folders and ports, no process yet. */
  static async create(dataDirectory?: string): Promise<TestNode> {
    const folder = mkdtempSync(join(tmpdir(), "pico-cluster-"));
    return new TestNode(folder, dataDirectory ?? join(folder, "data"), await freePorts());
  }

  get process(): NodeProcess {
    if (this.#process === null) throw new Error("the node was not started");
    return this.#process;
  }

  get logPath(): string {
    return join(this.folder, "log");
  }

  spawn(...flags: readonly string[]): NodeProcess {
    const { ports, dataDirectory, logPath } = this;
    this.#process = NodeProcess.spawn({ program, ports, dataDirectory, logPath, flags });
    return this.#process;
  }

  async start(...flags: readonly string[]): Promise<NodeProcess> {
    const process = this.spawn(...flags);
    await process.ready();
    return process;
  }

  /** `kill -9` and a start. */
  async restart(...flags: readonly string[]): Promise<NodeProcess> {
    await this.process.kill();
    return this.start(...flags);
  }

  /** A start that is to be refused, with its directory and ports unless told otherwise. */
  refused({ dataDirectory = this.dataDirectory, ports = this.ports, flags = [] }: RefusedOptions = {}): Promise<FailedStart> {
    return refusedStart({ program, dataDirectory, ports, flags });
  }

  /** To the Pico listener. Rejects without an answer. */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    const answer = await this.#connection.request(request);
    if (answer === null) throw new Error(`no answer to ${request.method} ${request.path}: ${this.process.lastWords()}`);
    return answer;
  }

  async create(name: string): Promise<void> {
    const answer = await this.send({ method: "PUT", path: name, headers: { "content-type": "text/plain" } });
    if (answer.status !== 201) throw new Error(`creating ${name}: ${answer.status} ${answer.body}`);
  }

  append(name: string, body: string): Promise<HttpAnswer> {
    return this.send({ method: "POST", path: name, headers: { "content-type": "text/plain" }, body });
  }

  read(name: string, query = ""): Promise<HttpAnswer> {
    return this.send({ method: "GET", path: `${name}?format=raw&bytes=4000000${query}` });
  }

  /** Null without an answer. */
  tryRead(name: string): Promise<HttpAnswer | null> {
    return this.#connection.request({ method: "GET", path: name });
  }

  async admin(path: string): Promise<HttpAnswer> {
    const connection = new HttpConnection(this.ports.admin);
    const answer = await connection.request({ method: "GET", path });
    connection.close();
    if (answer === null) throw new Error(`no answer to GET ${path} on the admin listener`);
    return answer;
  }

  async readDurableStream(path: string): Promise<HttpAnswer> {
    const answer = await this.#durableStreams.request({ method: "GET", path });
    if (answer === null) throw new Error(`no answer to GET ${path}`);
    return answer;
  }

  /** Files below a folder of the data directory, the largest first. */
  files(folder: string): string[] {
    const root = join(this.dataDirectory, folder);
    if (!existsSync(root)) return [];
    const paths = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    return paths.sort((left, right) => statSync(right).size - statSync(left).size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.close();
    this.#durableStreams.close();
    await this.#process?.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface RefusedOptions {
  readonly dataDirectory?: string;
  readonly ports?: Ports;
  readonly flags?: readonly string[];
}
