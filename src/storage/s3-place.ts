/** Where an S3 bucket is and how it wants to be spoken to, as one plain value. Credentials are no part of it. */

export interface S3Encryption {
  readonly algorithm: "AES256" | "aws:kms" | "aws:kms:dsse";
  /** Null: the bucket's own key. */
  readonly kmsKeyId: string | null;
}

export interface S3Place {
  readonly bucket: string;
  /** Stands before every key; empty, or with a slash at its end. */
  readonly prefix: string;
  /** Null: as the environment or the profile says, else `us-east-1`. */
  readonly region: string | null;
  /** `http://` or `https://`, without a slash at its end. Null: as the environment or the profile says, else AWS. */
  readonly endpoint: string | null;
  /** The bucket in the path of the URL, not in the host. Null: where the host has no names below it. */
  readonly isPathStyle: boolean | null;
  /** A directory bucket (S3 Express One Zone): signed by sessions, lists in no order. */
  readonly isExpress: boolean;
  /** How the store encrypts what it keeps; null: as the bucket says. */
  readonly encryption: S3Encryption | null;
}

/** Whether both name the same objects. */
export function sameS3Place(left: S3Place, right: S3Place): boolean {
  return left.bucket === right.bucket && left.prefix === right.prefix && left.endpoint === right.endpoint;
}

/** For messages: `s3://bucket/prefix`. */
export function formatS3Place({ bucket, prefix }: Pick<S3Place, "bucket" | "prefix">): string {
  return `s3://${bucket}${prefix === "" ? "" : `/${prefix.replace(/\/$/, "")}`}`;
}
