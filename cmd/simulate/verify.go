package main

import (
	"github.com/spf13/cobra"

	"anelab/cmd/simulate/internal/console"
)

func newVerifyCmd(c *console.Console) *cobra.Command {
	return &cobra.Command{Use: "verify", RunE: func(*cobra.Command, []string) error { return nil }}
}

func newCalibrateCmd(c *console.Console) *cobra.Command {
	return &cobra.Command{Use: "calibrate", RunE: func(*cobra.Command, []string) error { return nil }}
}
