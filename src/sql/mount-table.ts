/**
 * On which kind of file system a path lies, from Linux' `/proc/self/mountinfo`. SQLite's write-ahead mode
 * needs memory that all its users share and locks that hold: on a network folder it corrupts the database
 * (https://sqlite.org/wal.html, "All processes using a database must be on the same host computer").
 */

export interface MountKind {
  /** `network`: shared with other hosts. `unsure`: may be (FUSE and what passes folders into containers). */
  readonly kind: "local" | "network" | "unsure";
  /** As the kernel names it: `ext4`, `nfs4`, `fuse.sshfs`. */
  readonly fileSystem: string;
}

const NETWORK = new Set([
  "nfs",
  "nfs4",
  "cifs",
  "smb3",
  "smbfs",
  "ncpfs",
  "afs",
  "ceph",
  "glusterfs",
  "lustre",
  "beegfs",
  "gpfs",
  "ocfs2",
  "gfs2",
  "coda",
  "fuse.sshfs",
  "fuse.glusterfs",
  "fuse.s3fs",
  "fuse.rclone",
  "fuse.ceph",
  "fuse.juicefs",
  "fuse.gcsfuse",
  "fuse.goofys",
]);
const UNSURE = new Set(["fuse", "fuseblk", "9p", "virtiofs", "vboxsf", "prl_fs"]);

/** The kind of the mount that holds the absolute, resolved `path`; null where the table does not say. */
export function mountKindOf(mountTable: string, path: string): MountKind | null {
  let longest = -1;
  let fileSystem: string | null = null;
  for (const line of mountTable.split("\n")) {
    // id parent major:minor root mount-point options… - type source super-options
    const fields = line.split(" ");
    const separator = fields.indexOf("-");
    const escaped = fields[4];
    const type = fields[separator + 1];
    if (escaped === undefined || separator === -1 || type === undefined) continue;
    const mountPoint = unescapeMount(escaped);
    const holds = mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
    // Of two mounts on one point the later one covers the earlier.
    if (holds && mountPoint.length >= longest) {
      longest = mountPoint.length;
      fileSystem = type;
    }
  }
  return fileSystem === null ? null : { kind: classify(fileSystem), fileSystem };
}

function classify(fileSystem: string): MountKind["kind"] {
  if (NETWORK.has(fileSystem)) return "network";
  return UNSURE.has(fileSystem) || fileSystem.startsWith("fuse.") ? "unsure" : "local";
}

/** The table writes blanks and backslashes as three octal digits. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
