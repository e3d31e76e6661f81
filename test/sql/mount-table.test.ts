import { describe, expect, test } from "bun:test";
import { mountKindOf } from "../../src/sql/mount-table.ts";

const table = `
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw,relatime shared:9 - nfs4 server:/export rw,vers=4.2
31 22 0:41 / /mnt/share/local rw - xfs /dev/sdb rw
32 22 0:42 / /mnt/with\\040blank rw master:3 propagate_from:1 - cifs //server/share rw
33 22 0:43 / /home/me/remote rw - fuse.sshfs me@host: rw
34 22 0:44 / /host rw - virtiofs folder rw
35 22 0:45 / /other rw - fuse.unheard-of x rw
36 22 0:46 / /covered rw - nfs server:/a rw
37 36 0:47 / /covered rw - tmpfs tmpfs rw
`;

describe("mount table", () => {
  test.each([
    ["/var/lib/pico", "local", "ext4"],
    ["/mnt/share", "network", "nfs4"],
    ["/mnt/share/deep/er", "network", "nfs4"],
    ["/mnt/shared", "local", "ext4"],
    ["/mnt/share/local/data", "local", "xfs"],
    ["/mnt/with blank/data", "network", "cifs"],
    ["/home/me/remote", "network", "fuse.sshfs"],
    ["/host/data", "unsure", "virtiofs"],
    ["/other", "unsure", "fuse.unheard-of"],
    ["/covered/data", "local", "tmpfs"],
  ] as const)("%s is %s (%s)", (path, kind, fileSystem) => {
    expect(mountKindOf(table, path)).toEqual({ kind, fileSystem });
  });

  test("a table that says nothing gives nothing", () => {
    expect(mountKindOf("", "/data")).toBeNull();
    expect(mountKindOf("garbage\n1 2 3\n", "/data")).toBeNull();
  });
});
