// Package archtest answers: does the code still have the shape that was drawn for it?
//
// Its tests parse the sources of the whole module (no build, no "go list": the test cache would not see a change) and hold
// them against two things:
//
//   - a table of who may import whom and which package owns which third-party module. A package that is not in the table
//     fails, so the drawing cannot fall behind;
//   - the rules of style that a machine can check: a doc.go in every package, a doc comment on every exported identifier, at
//     most five parameters, no boolean parameters in exported functions, lengths of functions, no unfinished marks, no paths
//     of one machine, a reason on record for every module and every test file.
//
// To add a package, add its line to the table in imports_test.go.
//
// Start at the variable mayImport.
package archtest
