# Prints the demo's sales as CSV: the same bytes for the same seed, with mawk and with gawk.
#
#   awk -f configs/demo/make_sales.awk -v seed=20240229 -v rows=50000 > sales.csv
#
# The numbers come from a generator of our own, because rand() differs between awks. About one row in twenty is
# dirty, in the ways that real exports are: a missing value, text where a number belongs, a negative quantity, an
# impossible date, a row that came twice. Dates come in three formats; those are all valid.

function random(n) {  # 0 .. n-1; Park and Miller's generator, exact in a double
    state = (state * 16807) % 2147483647
    return state % n
}

function chance(percent) {
    return random(10000) < percent * 100
}

function two(n) {
    return n < 10 ? "0" n : "" n
}

function date(day,    month, format) {
    month = 1
    while (day > days[month]) {
        day -= days[month]
        month++
    }
    format = random(100)
    if (format < 82) {
        return "2024-" two(month) "-" two(day)
    }
    if (format < 94) {
        return two(day) "/" two(month) "/2024"
    }
    return day " " names[month] " 2024"
}

# Some days sell better than others: more towards the end of the year, most in December.
function some_day(    day) {
    do {
        day = random(366) + 1
    } while (random(1000) > 420 + day + (day > 335 ? 200 : 0))
    return day
}

# Spoils one field of the row in place.
function spoil(    kind) {
    kind = random(8)
    if (kind == 0) field[3] = ""
    if (kind == 1) field[6] = ""
    if (kind == 2) field[7] = ""
    if (kind == 3) field[6] = "n/a"
    if (kind == 4) field[7] = "call us"
    if (kind == 5) field[6] = -field[6]
    if (kind == 6) field[2] = random(2) ? "2024-13-" two(random(28) + 1) : ""
    if (kind == 7) field[7] = "-" field[7]
}

function row() {
    return field[1] "," field[2] "," field[3] "," field[4] "," field[5] "," field[6] "," field[7]
}

BEGIN {
    state = seed + 0 > 0 ? (seed + 0) % 2147483647 : 20240229
    rows = rows + 0 > 0 ? rows + 0 : 50000
    split("31 29 31 30 31 30 31 31 30 31 30 31", days, " ")
    split("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", names, " ")
    regions = split("North North North South South East East East West", region, " ")
    products = split("kettle lamp desk chair shelf heater", product, " ")
    split("3900 2450 21900 12900 8450 6990", cents, " ")
    channels = split("web web web store store phone", channel, " ")

    print "order_id,date,region,product,channel,quantity,unit_price"
    for (n = 1; n <= rows; n++) {
        if (kept > 0 && chance(1)) {
            print recent[random(kept) + 1]
            continue
        }
        p = random(products) + 1
        price = cents[p] - random(int(cents[p] / 5))
        field[1] = "A" (100000 + n)
        field[2] = date(some_day())
        field[3] = region[random(regions) + 1]
        field[4] = product[p]
        field[5] = channel[random(channels) + 1]
        field[6] = random(9) == 0 ? 5 + random(20) : 1 + random(4)
        field[7] = int(price / 100) "." two(price % 100)
        if (chance(1)) field[3] = tolower(field[3])
        if (chance(4)) spoil()
        slot = kept < 200 ? ++kept : random(200) + 1
        recent[slot] = row()
        print recent[slot]
    }
}
