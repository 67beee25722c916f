//go:build dataflow

package main

import _ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
