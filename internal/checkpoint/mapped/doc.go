// Package mapped answers: how do the bytes of a large file become a slice without being read?
//
// On Unix a file is mapped read-only, so opening costs nothing and the system pages in what is used; elsewhere, and for
// files of an [fs.FS], it is read whole. Writing into the bytes of a mapped file crashes the program, and so does reading
// them after another program has shortened the file.
//
// Start at [Open] for one file, at [Disk] or [In] for the files of one folder.
package mapped
