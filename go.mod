module github.com/reusecheck/reusecheck

go 1.26
