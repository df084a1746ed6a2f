#!/bin/bash
set -eu
rm -rf target/debug
