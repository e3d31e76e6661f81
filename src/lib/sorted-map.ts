/**
 * The sorted map of the server: a B+ tree (package `sorted-btree`). The package is CommonJS, and a bundle
 * sees its default export one level deeper than a plain run does; required, it is the same in both.
 */
import sortedBtree = require("sorted-btree");

export const SortedMap = sortedBtree.default;
export type SortedMap<Key, Value> = sortedBtree.default<Key, Value>;
