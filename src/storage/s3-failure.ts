/**
 * One attempt of a call to an S3 store that did not succeed: what the store or the way to it said, whether another
 * attempt may help, and whether this one may have taken effect.
 *
 * Only a refusal that the store itself words is certain. What a gateway answers (5xx), what is no answer of an S3
 * store, and a connection that ended say nothing about the effect.
 */
import { messageOf, PicoError } from "../lib/errors.ts";
import { formatS3Place, type S3Place } from "./s3-place.ts";

export interface S3Failure {
  /** Null where there was no answer. */
  readonly status: number | null;
  /** The store's own word (`SlowDown`), or that of the connection (`ECONNRESET`). */
  readonly code: string;
  readonly message: string;
  readonly isRetryable: boolean;
  readonly isInDoubt: boolean;
  /** Where the bucket is, if the store said so. */
  readonly region: string | null;
}

export class S3Error extends Error {
  override readonly name = "S3Error";

  constructor(
    readonly failure: S3Failure,
    cause?: unknown,
  ) {
    super(`${failure.code}: ${failure.message}`, cause === undefined ? undefined : { cause });
  }
}

/** Statuses and codes that another attempt may get past, and that say for certain that nothing was done. */
const BUSY_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);
const BUSY_CODES: ReadonlySet<string> = new Set([
  "ConditionalRequestConflict",
  "OperationAborted",
  "RequestTimeout",
  "RequestTimeTooSkewed",
  "ExpiredToken",
  "ExpiredTokenException",
  "TokenRefreshRequired",
  "BadDigest",
  "XAmzContentSHA256Mismatch",
]);
/** No connection came about, so nothing was sent. */
const UNREACHED_CODES: ReadonlySet<string> = new Set([
  "ConnectionRefused",
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);
/** Words of stores for a quota that is used up, with statuses of their own. */
const FULL_CODES: ReadonlySet<string> = new Set(["QuotaExceeded", "XMinioAdminBucketQuotaExceeded"]);
const CERTIFICATE_CODES = /CERT|SIGNATURE|ERR_TLS/;

/** What an answer with an error's status means. */
export function refusalOf(status: number, code: string, message: string, region: string | null = null): S3Error {
  const isFull = status === 507;
  const isServerFault = status >= 500 && !isFull && status !== 501;
  return new S3Error({
    status,
    code,
    message,
    region,
    isRetryable: isServerFault || BUSY_STATUSES.has(status) || BUSY_CODES.has(code),
    isInDoubt: isServerFault,
  });
}

/** An answer that no S3 store gives in good health: cut off, empty, or an error where success was announced. */
export function badAnswer(status: number, message: string): S3Error {
  return new S3Error({ status, code: "BadAnswer", message, region: null, isRetryable: true, isInDoubt: true });
}

export function lateAnswer(timeoutMs: number): S3Error {
  const message = `no answer within ${Math.round(timeoutMs)} ms`;
  return new S3Error({ status: null, code: "TimeOut", message, region: null, isRetryable: true, isInDoubt: true });
}

/** What a failed connection means. */
export function connectionFailure(error: unknown): S3Error {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "ConnectionFailed";
  const isUnreached = UNREACHED_CODES.has(code);
  const isUntrusted = CERTIFICATE_CODES.test(code);
  return new S3Error(
    {
      status: null,
      code,
      message: messageOf(error),
      region: null,
      isRetryable: !isUntrusted,
      isInDoubt: !isUnreached && !isUntrusted,
    },
    error,
  );
}

/** The chain of credentials gave none. A service that hands them out may only be away for a moment. */
export function credentialFailure(error: unknown): S3Error {
  return new S3Error(
    { status: null, code: "NoCredentials", message: messageOf(error), region: null, isRetryable: false, isInDoubt: false },
    error,
  );
}

export function isRefusedAs(error: unknown, ...codes: readonly string[]): error is S3Error {
  return error instanceof S3Error && codes.includes(error.failure.code);
}

/**
 * The error of a whole call. `isInDoubt`: one of its attempts may have changed something.
 * Names operation, bucket and key; facts hold the store's own code.
 */
export function storeError(call: {
  readonly operation: string;
  readonly place: S3Place;
  /** Without the prefix; null where the call is about the bucket. */
  readonly key: string | null;
  readonly isInDoubt: boolean;
  readonly error: S3Error;
}): PicoError {
  const { operation, place, key, isInDoubt, error } = call;
  const { status, code, message, isRetryable } = error.failure;
  const where = `${formatS3Place(place)}${key === null || key === "" ? "" : `/${key}`}`;
  const said = `${operation} at ${where} ${isInDoubt ? "may have taken effect" : "failed"}: ${code === message ? code : `${code}, ${message}`}`;
  const remedy = remedyOf(error.failure, place);
  const facts = { operation, bucket: place.bucket, key, status, code, isRetryable };
  const kind = isInDoubt ? "unknown_outcome" : status === 507 || FULL_CODES.has(code) ? "storage_full" : "storage_failed";
  return new PicoError(kind, `${said.replace(/[.\s]+$/, "")}${remedy === null ? "" : `; ${remedy}`}`, facts, error.cause);
}

/** What a person can do about it; null where waiting is all. */
export function remedyOf({ status, code, region }: S3Failure, place: Pick<S3Place, "bucket" | "endpoint">): string | null {
  switch (code) {
    case "NoSuchBucket":
      return `there is no bucket ${place.bucket}: create it, or name another one`;
    case "InvalidBucketName":
      return `${place.bucket} is no name that this store takes for a bucket`;
    case "AccessDenied":
    case "AllAccessDisabled":
      return "the credentials are good and lack the right: allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on the bucket";
    case "InvalidAccessKeyId":
    case "SignatureDoesNotMatch":
    case "InvalidToken":
      return "the store does not know these credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
    case "NoCredentials":
      return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or run where a role gives credentials";
    case "ExpiredToken":
    case "ExpiredTokenException":
    case "TokenRefreshRequired":
      return "the credentials have expired: renew them";
    case "RequestTimeTooSkewed":
      return "the clock of this machine is wrong: set it (NTP)";
    case "PermanentRedirect":
    case "AuthorizationHeaderMalformed":
    case "IllegalLocationConstraintException":
      return region === null
        ? "the bucket is in another region: give it with region=, or AWS_REGION"
        : `the bucket is in the region ${region}: give region=${region}`;
    case "NotImplemented":
      return "the store lacks this feature";
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "ConnectionRefused":
    case "ECONNREFUSED":
      return `nothing answers at the endpoint${place.endpoint === null ? "" : ` ${place.endpoint}`}: check endpoint= or AWS_ENDPOINT_URL, and that the store runs`;
    case "NotS3":
      return "is the endpoint that of an S3 store?";
  }
  if (CERTIFICATE_CODES.test(code)) return "its certificate is not trusted: NODE_EXTRA_CA_CERTS names a file of further authorities";
  return status === 403 ? "the credentials lack the right, or are not known to the store" : null;
}
