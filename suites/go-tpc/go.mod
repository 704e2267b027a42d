// The TPC-C client that `cargo xtask tpcc` runs.
module plateau/suites/tpcc

go 1.21

require github.com/pingcap/go-tpc v1.0.12
