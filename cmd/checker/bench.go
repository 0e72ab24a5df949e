package main

import "github.com/spf13/cobra"

func newBench(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure",
		Long:  "Bench measures what the project's numbers are about. See bench/README.md for all of them.",
		Example: `  checker bench bind
  checker bench bind --live
  checker bench history
  checker bench shrink --starts 100
  checker bench timewait
  checker bench udp`,
		Args: aVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchBind(std), newBenchHistory(std), newBenchShrink(std), newBenchTimeWait(std), newBenchUDP(std))
	return cmd
}
