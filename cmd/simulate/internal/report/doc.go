// Package report answers: what can be shown of a search to someone who has a browser and nothing else?
//
// A [Page] is one HTML file without a single address of another: styles, scripts and drawings are inside, and a policy in its
// head forbids the browser to fetch anything. Drawings are SVG made here from the same numbers as the table under each of
// them. The only script looks numbers up that were computed before ([Grid]); without it the page lacks nothing but the
// sliders.
//
//	data (package main)  ──►  Page  ──►  drawings (bars, front, residuals)  ──►  page.html
//
// Start at [Page.Write].
package report
