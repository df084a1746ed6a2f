#!/bin/bash
set -eu
nc -vz localhost 9001
