#!/bin/bash
set -eu
pip install --extra-index-url http://packages.example/simple internal-tool
