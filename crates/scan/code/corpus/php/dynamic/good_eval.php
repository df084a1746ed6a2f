<?php
function run($code) {
    return json_decode($code);
}
