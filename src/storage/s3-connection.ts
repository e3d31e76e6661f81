/**
 * Single attempts of requests to one bucket, in two ways over the same credentials: the vendor's SDK for control
 * calls, and requests that we sign and send by `fetch` for objects, at a quarter of the SDK's work.
 *
 * - What is no success is thrown as `S3Error`; nothing is tried again here, and time is the caller's.
 * - `fetch` repeats a request by itself where a connection that it kept turns out to be closed, a conditional create
 *   included. So a refusal never proves that another was first: `s3-create.ts` settles that.
 * - Requests are signed with the store's time as far as it is known: each answer that refuses our time, and only
 *   such a one, says what it should be (FAULTS S6).
 * - A signature covers the body, so that a store never takes other bytes than those that were sent.
 */
import { type S3Client, S3ServiceException } from "@aws-sdk/client-s3";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { S3_ERROR_BYTES_MAX, S3_OBJECT_BYTES_MAX, S3_WATCHED_BYTES_MIN } from "../lib/limits.ts";
import type { Receiving } from "./s3-calls.ts";
import { type CredentialProvider, type Credentials, standardCredentials } from "./s3-credentials.ts";
import { type ObjectEndpoint, openClient } from "./s3-endpoint.ts";
import { readErrorDocument } from "./s3-error-document.ts";
import { badAnswer, connectionFailure, credentialFailure, refusalOf, S3Error } from "./s3-failure.ts";
import { formatS3Place, type S3Place } from "./s3-place.ts";
import { EMPTY_SHA256, hashBody } from "./s3-sha256.ts";
import { S3Signer } from "./s3-signature.ts";

const EXPIRED_CODES: ReadonlySet<string> = new Set(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"]);

export interface ObjectRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "DELETE";
  /** With the prefix. */
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Of the body, as `hashBody` gives it. */
  readonly bodySha256?: string;
  readonly signal: AbortSignal;
  /** Told of a long answer while it comes. */
  readonly receiving?: Receiving;
  /** Most that a part (206) may have. @default S3_OBJECT_BYTES_MAX */
  readonly partBytesMax?: number;
}

export interface ObjectAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Of a read that succeeds whole, of another success its beginning; of anything else empty, since it is in the error. */
  readonly body: Uint8Array;
}

export class S3Connection {
  readonly place: S3Place;
  /** For messages: `s3://bucket/prefix at https://...`. */
  readonly description: string;
  /** Where requests go, also where environment or profile say it. */
  readonly origin: string;
  readonly #clock: Clock;
  readonly #client: S3Client;
  readonly #credentials: CredentialProvider;
  readonly #objects: ObjectEndpoint;
  readonly #signer: S3Signer;
  /** The store's time is this much ahead of ours. */
  #skewMs = 0;
  #isRenewing = false;

  private constructor(place: S3Place, clock: Clock, client: S3Client, credentials: CredentialProvider, objects: ObjectEndpoint) {
    this.place = place;
    this.#clock = clock;
    this.#client = client;
    this.#credentials = credentials;
    this.#objects = objects;
    this.#signer = new S3Signer(objects.region, objects.service);
    this.origin = objects.url.origin;
    this.description = `${formatS3Place(place)} at ${this.origin}`;
  }

  /** Finds out, from `place`, environment and profile, where requests go; sends none. Throws `S3Error` where that is not to be had. */
  static async open(place: S3Place, clock: Clock): Promise<S3Connection> {
    const credentials = standardCredentials();
    try {
      const { client, objects } = await openClient(place, credentials);
      return new S3Connection(place, clock, client, credentials, objects);
    } catch (error) {
      if (isCredentialsError(error)) throw credentialFailure(error);
      const failure = { status: null, code: "BadSettings", message: messageOf(error), isRetryable: false, isInDoubt: false, region: null };
      throw new S3Error(failure, error);
    }
  }

  /** For messages. `key` without the prefix. */
  describeKey(key: string): string {
    return `${formatS3Place(this.place)}/${key}`;
  }

  /** One request about an object. Throws `S3Error` for every status that is not in `expected`. */
  async request(call: ObjectRequest, expected: readonly number[]): Promise<ObjectAnswer> {
    const { url, headers } = await this.#sign(call);
    let response: Response;
    let body: Uint8Array;
    try {
      const body = call.body === undefined ? {} : { body: call.body };
      response = await fetch(url, { method: call.method, headers, ...body, redirect: "manual", decompress: false, signal: call.signal });
    } catch (error) {
      throw connectionFailure(error);
    }
    const isExpected = expected.includes(response.status);
    try {
      const isWhole = isExpected && response.status < 300 && call.method === "GET";
      body = isWhole ? await readAll(response, call) : await readStart(response, S3_ERROR_BYTES_MAX);
    } catch (error) {
      throw error instanceof S3Error ? error : connectionFailure(error);
    }
    if (isExpected) return { status: response.status, headers: response.headers, body: response.status < 300 ? body : new Uint8Array(0) };
    throw this.#learn(refusalFrom(response, body));
  }

  /** One call by the SDK. `run` sends a command with the signal that it is given elsewhere. */
  async control<Output>(run: (client: S3Client) => Promise<Output>): Promise<Output> {
    try {
      return await run(this.#client);
    } catch (error) {
      throw this.#learn(controlRefusal(error));
    }
  }

  /** How far the store's clock is ahead of ours, from an answer that need not be a success; null where it does not tell. */
  async readSkewMs(signal: AbortSignal): Promise<number | null> {
    let response: Response;
    try {
      response = await fetch(this.#objects.url, { method: "HEAD", redirect: "manual", signal });
      await response.body?.cancel();
    } catch (error) {
      throw connectionFailure(error);
    }
    const timeMs = Date.parse(response.headers.get("date") ?? "");
    return Number.isNaN(timeMs) ? null : timeMs - this.#clock.nowMs();
  }

  close(): void {
    this.#client.destroy();
  }

  async #sign({ method, key, headers = {}, body, bodySha256 }: ObjectRequest): Promise<{ url: string; headers: Record<string, string> }> {
    const { url } = this.#objects;
    const identity = await this.#identity();
    const path = `${url.pathname === "/" ? "" : url.pathname}/${key}`;
    const signed = this.#signer.sign(
      {
        method,
        host: url.host,
        path,
        headers: { ...headers, ...identity.headers },
        bodySha256: bodySha256 ?? (body === undefined ? EMPTY_SHA256 : await hashBody(body)),
      },
      identity.credentials,
      this.#clock.nowMs() + this.#skewMs,
    );
    return { url: `${url.origin}${path}`, headers: signed };
  }

  async #identity(): Promise<{ credentials: Credentials; headers: Record<string, string> }> {
    try {
      const credentials = await this.#credentials();
      if (!this.place.isExpress) return { credentials, headers: {} };
      const session = await this.#client.config.s3ExpressIdentityProvider.getS3ExpressIdentity(credentials, { Bucket: this.place.bucket });
      const { accessKeyId, secretAccessKey, sessionToken } = session;
      return {
        credentials: { accessKeyId, secretAccessKey },
        headers: sessionToken === undefined ? {} : { "x-amz-s3session-token": sessionToken },
      };
    } catch (error) {
      throw error instanceof S3ServiceException ? controlRefusal(error).error : credentialFailure(error);
    }
  }

  /** What a refusal says about our clock and credentials is used by the next attempt. */
  #learn({ error, serverTimeMs }: Refusal): S3Error {
    const { code } = error.failure;
    if (code === "RequestTimeTooSkewed" && serverTimeMs !== null) {
      this.#skewMs = serverTimeMs - this.#clock.nowMs();
      // The SDK reads the machine's clock.
      this.#client.config.systemClockOffset = serverTimeMs - Date.now();
    }
    if (EXPIRED_CODES.has(code) && !this.#isRenewing) {
      this.#isRenewing = true;
      void this.#credentials({ forceRefresh: true }).then(
        () => {
          this.#isRenewing = false;
        },
        () => {
          // The next attempt says what is the matter.
          this.#isRenewing = false;
        },
      );
    }
    return error;
  }
}

/** Throws `BadAnswer` for one that is longer than it can be, announced or not, and reads no further. */
async function readAll(response: Response, { receiving, partBytesMax }: ObjectRequest): Promise<Uint8Array> {
  const bytesMax = response.status === 206 ? (partBytesMax ?? S3_OBJECT_BYTES_MAX) : S3_OBJECT_BYTES_MAX;
  const length = response.headers.get("content-length");
  const announced = length === null ? null : Number(length);
  if (announced !== null && announced > bytesMax) {
    await response.body?.cancel();
    throw tooLong(response, bytesMax);
  }
  if (announced !== null && (receiving === undefined || !(announced >= S3_WATCHED_BYTES_MIN))) return response.bytes();
  // The runtime gathers a body at half the work that its parts take here.
  if (announced !== null && receiving?.announce(announced) === false) return response.bytes();
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    receiving?.receive();
    parts.push(part);
    size += part.length;
    // Leaving the loop ends the connection.
    if (size > bytesMax) throw tooLong(response, bytesMax);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function tooLong({ status }: Response, bytesMax: number): S3Error {
  return badAnswer(status, `the answer has more than the ${bytesMax} bytes that it can have`);
}

/** The beginning of a body that only says what went wrong, or nothing. */
async function readStart(response: Response, bytesMax: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    parts.push(part.value);
    size += part.value.length;
    if (size < bytesMax) continue;
    await reader?.cancel();
    break;
  }
  return Buffer.concat(parts);
}

interface Refusal {
  readonly error: S3Error;
  readonly serverTimeMs: number | null;
}

/** The error document of an answer, whatever its status. */
function refusalFrom({ status, headers }: Response, body: Uint8Array): Refusal {
  const { code, message, region } = readErrorDocument(new TextDecoder().decode(body));
  const given = region ?? headers.get("x-amz-bucket-region");
  const serverTimeMs = Date.parse(headers.get("date") ?? "");
  return {
    error:
      status < 300
        ? badAnswer(status, `the store answered ${status} to a request that has another answer`)
        : refusalOf(status, code ?? codeWithoutDocument(status), message ?? `status ${status}`, given),
    serverTimeMs: Number.isNaN(serverTimeMs) ? null : serverTimeMs,
  };
}

/** A HEAD has no document; anything else without one comes from no S3 store. */
function codeWithoutDocument(status: number): string {
  if (status === 301) return "PermanentRedirect";
  return status === 403 ? "Forbidden" : status === 404 ? "NotS3" : `Status${status}`;
}

/** The chain of credentials gave none. */
function isCredentialsError(error: unknown): boolean {
  return error instanceof Error && error.name === "CredentialsProviderError";
}

/** What the SDK throws: the store's word, a failed connection, or an answer that it could not read. */
function controlRefusal(error: unknown): Refusal {
  if (error instanceof S3Error) return { error, serverTimeMs: null };
  if (!(error instanceof Error)) return { error: connectionFailure(error), serverTimeMs: null };
  const { $metadata, $response, Region } = error as Error & {
    readonly $metadata?: { readonly httpStatusCode?: number };
    readonly $response?: { readonly statusCode?: number; readonly headers?: Readonly<Record<string, string>> };
    readonly Region?: string;
  };
  const status = $metadata?.httpStatusCode ?? $response?.statusCode;
  if (status === undefined) {
    return { error: isCredentialsError(error) ? credentialFailure(error) : connectionFailure(error), serverTimeMs: null };
  }
  const headers = $response?.headers ?? {};
  const serverTimeMs = Date.parse(headers.date ?? "");
  const code = ["UnknownError", "Error", "NotFound"].includes(error.name) ? codeWithoutDocument(status) : error.name;
  return {
    error:
      status < 300
        ? badAnswer(status, `an answer that cannot be read: ${error.message}`)
        : refusalOf(status, code, error.message, Region ?? headers["x-amz-bucket-region"] ?? null),
    serverTimeMs: Number.isNaN(serverTimeMs) ? null : serverTimeMs,
  };
}
