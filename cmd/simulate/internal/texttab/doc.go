// Package texttab answers: how does a result look on 80 columns, or as Markdown?
//
// A [Page] is written from top to bottom: lines, tables, footnotes. The same calls make plain text and Markdown, so a verb
// describes its screen once.
//
//	page.Line(…)          text, folded between words at 80 columns
//	page.Table(t)         columns two blanks apart, no boxes; a [Column] that folds takes the width that is left
//	page.Note(…) → "¹"    the mark for a cell; the text comes with Notes
//
// Widths are counted in characters as a terminal shows them. Colour is added after widths are known and never inside a cell.
//
// Start at [NewPage].
package texttab
