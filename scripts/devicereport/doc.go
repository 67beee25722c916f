// Command devicereport compiles, loads and times Core ML packages on a Mac, asks where their ops run, compares their outputs with
// recorded ones, and prints all of it as one JSON document (docs/schema/device_report.schema.json). scripts/device_validate.sh builds and
// runs it.
//
//	devicereport [flags] PACKAGE.mlpackage|MODEL.mlmodelc...
//
// Calls that lie beside a package, NAME.safetensors with index.json ([anelab/parity/recorded]), are made and judged. Without any the package is
// timed on inputs that anybody can make again ([anelab/coreml/device.Filler]).
//
// The document goes to standard output, progress to standard error. The exit code is 1 if something failed or an output is further from
// the recorded one than allowed; the document is printed all the same.
//
// Start at main.
package main
