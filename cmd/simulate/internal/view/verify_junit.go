package view

import (
	"encoding/xml"
	"fmt"
	"io"
)

// JUnit is the format that CI systems read test results in. Only results with claims have it.
const JUnit Format = "junit"

// Claim is one thing that held, or did not.
type Claim struct {
	Group   string
	Name    string
	Failure string // one line; "" if it held
	Detail  string
}

// Claiming is a result made of claims.
type Claiming interface {
	Claims() []Claim
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes claims, a suite per group.
func WriteJUnit(w io.Writer, r Claiming) error {
	all := junitSuites{Name: "simulate verify"}
	at := map[string]int{}
	for _, c := range r.Claims() {
		i, known := at[c.Group]
		if !known {
			i = len(all.Suites)
			at[c.Group] = i
			all.Suites = append(all.Suites, junitSuite{Name: c.Group})
		}
		s := &all.Suites[i]
		one := junitCase{Class: c.Group, Name: c.Name}
		all.Tests, s.Tests = all.Tests+1, s.Tests+1
		if c.Failure != "" {
			all.Failures, s.Failures = all.Failures+1, s.Failures+1
			one.Failure = &junitFailure{Message: c.Failure, Type: "parting", Text: c.Detail}
		}
		s.Cases = append(s.Cases, one)
	}
	if _, err := fmt.Fprint(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
