/**
 * What a case of the client needs around it: a server that can be killed and a proxy that does harm. The suite runs in
 * programs, which start both themselves, and in a web page, which has them started (`browser-stage.ts`).
 */

export interface TestServer {
  readonly picoUrl: string;
  readonly durableStreamsUrl: string;
  /** `kill -9`, and a start on the same ports and data. */
  restart(): Promise<void>;
  /** `kill -9`; it stays down. */
  kill(): Promise<void>;
  /** Starts it again. */
  revive(): Promise<void>;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

export interface ProxiedRequest {
  readonly method: string;
  /** Path with its query. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export type Fault =
  | { readonly kind: "pass" }
  /** The server answers, nobody hears it. */
  | { readonly kind: "lose-answer" }
  /** The answer ends behind so many bytes of its body. */
  | { readonly kind: "cut"; readonly bodyBytes: number }
  /** Answered by the proxy; the server hears nothing. */
  | { readonly kind: "answer"; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** The connection ends before the server hears anything. */
  | { readonly kind: "drop" }
  /** No answer, no end. */
  | { readonly kind: "hang" }
  /** What comes at once is answered, then nothing, and no end. */
  | { readonly kind: "stall" };

/** What to do with the request number `index`, from 0. */
export type FaultRule = (request: ProxiedRequest, index: number) => Fault;

export const PASS: Fault = { kind: "pass" };

export interface TestProxy {
  readonly url: string;
  /** In the order in which they came; preflights of web pages are none. */
  readonly requests: readonly ProxiedRequest[];
  close(): Promise<void>;
}

export interface CaseStage {
  /** A server on free ports; resolves once it serves. */
  startServer(flags: readonly string[]): Promise<TestServer>;
  /** A proxy before the address. */
  startProxy(target: string, rule: FaultRule): Promise<TestProxy>;
}
