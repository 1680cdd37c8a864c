"""Synonyms in the context of tools. Written by hand, and not fitted to any set of test queries.

Each line is a group: a query with one of its words may mean any other. A word may be in several groups.
"""

from collections.abc import Iterable
from functools import cache

from emceepee.search.stems import stem

_GROUPS = """
get fetch retrieve obtain read load pull
read view show display open see print
search find lookup query locate discover
list enumerate show browse index all
create add make new insert register generate
generate create produce make build compose
write save store put record persist
save store keep remember persist archive
update edit modify change alter revise adjust patch set
delete remove erase drop destroy purge discard clear
cancel abort stop revoke undo
stop end halt terminate kill shutdown quit
start begin launch run open initiate
run execute invoke call launch perform
restart reboot reload reset
send deliver transmit post submit dispatch
publish post share release announce
upload import push attach
download export fetch save
copy duplicate clone replicate
move rename relocate transfer
rename retitle relabel
merge combine join unite concatenate
split divide separate break chunk
compare diff difference contrast versus
check verify validate test inspect confirm
test check try probe ping
analyze examine inspect study evaluate assess
evaluate assess rate score review judge
calculate compute determine work count solve
count number total amount quantity
sum total add aggregate
convert transform translate change turn
translate translation language interpret
summarize summary digest condense overview brief abstract tldr
explain describe clarify teach
describe details info information about metadata
info information details data facts
extract parse scrape pull
scrape crawl spider extract
parse decode read interpret
encode encrypt encipher
decrypt decode decipher
compress zip archive shrink
extract unzip decompress unpack
format style beautify layout
sort order rank arrange
filter select narrow choose
choose pick select
recommend suggest advise propose recommendation suggestion advice
schedule plan book arrange
plan itinerary schedule
book reserve reservation booking
buy purchase order shop shopping
shop store shopping ecommerce product buy
sell sale trade
pay payment charge bill checkout transaction
price cost quote rate fee pricing
cheap discount deal coupon bargain promo voucher
invoice bill receipt
money currency cash funds finance
exchange currency forex convert rate
stock share equity ticker market
invest investment portfolio trading finance
crypto cryptocurrency bitcoin ethereum coin token blockchain
bank account balance
loan credit mortgage
tax vat duty
email mail message gmail inbox
message chat dm text sms
chat conversation talk dialogue
notify alert remind notification
remind reminder alarm
comment reply note annotation remark
note memo remark jot
document doc file paper text
file document path
folder directory
picture image photo photograph
image picture photo graphic illustration drawing
draw sketch paint illustrate
video movie clip film footage youtube
movie film cinema
show series tv episode television
song music track tune audio
audio sound voice speech recording
speak speech voice tts say pronounce
transcribe transcript transcription subtitle caption
book novel ebook literature reading
paper article research publication study journal
article post blog news story
news headline article current
recipe cook cooking meal dish food
food meal dish restaurant cuisine dining
restaurant dining eat eatery cafe
drink beverage cocktail
diet nutrition calorie
exercise workout fitness training
health medical medicine doctor clinical
doctor physician clinic
hotel accommodation lodging stay room hostel
flight plane airline airfare airport
trip travel journey vacation holiday tour
car vehicle automobile
train rail railway
house home property estate apartment
rent rental lease
map location place geography
location place position coordinates address where
address location street
route directions navigate path
near nearby around close local
distance length far
weather forecast temperature climate rain
temperature degrees
time clock hour
date day calendar
calendar event meeting appointment agenda schedule
event happening concert occasion
meeting appointment call
timezone zone
job career employment vacancy position hiring
resume cv
company business firm corporation organization
employee staff worker
customer client buyer
user member account person profile
person people human contact
friend contact
team group
login signin authenticate authentication
password credential secret passphrase
permission access right role privilege
website site web page webpage url link
url link address web
browser web page
internet web online
screenshot snapshot capture
search google bing web
code source program script programming
program application app software
bug issue defect error problem
issue ticket bug
error exception failure fault problem
fix repair correct resolve solve
commit revision changeset
branch fork
repository repo project codebase
history log past changes
log record journal entry
diff changes difference
database db sql table
table sheet spreadsheet grid
spreadsheet excel csv sheet
row record entry
column field attribute
query sql select
schema structure definition
graph chart plot diagram visualization
chart graph plot visualize
diagram flowchart mindmap
memory knowledge remember
relation relationship link connection
object item thing entity
knowledge facts wiki encyclopedia
size dimension length
text string words
word term vocabulary
definition meaning dictionary
synonym thesaurus
grammar spelling proofread
question ask query quiz
answer reply respond response
quiz trivia exam test
learn study education tutor course
course class lesson tutorial training
teacher tutor instructor
student pupil learner
school university college
math mathematics arithmetic algebra calculation
equation formula
random chance dice
game play gaming
joke humor funny fun
quote quotation saying
story tale narrative fiction
poem poetry verse
gift present
pet animal dog cat
plant flower garden
law legal lawyer court
contract agreement legal
horoscope astrology zodiac
space astronomy planet star nasa
air pollution quality
energy power electricity
device gadget hardware
phone mobile telephone call
server host machine
container docker
cluster kubernetes
cloud aws azure
network connection
ip address
domain dns whois
status state condition health
progress status
version release
latest newest recent current
current now present today
today now
popular trending trend hot top
trend trending popular
best top highest
top best leading
multiple several many batch various
several multiple many
whole entire full complete
replace substitute swap
pattern regex glob
tree hierarchy recursive nested
content contents text body
permissions access
settings configuration config options preferences
configure set setup
enable activate
disable deactivate
install setup
undo revert rollback reset
think reason reasoning reflect
step stage phase
idea brainstorm inspiration concept
design layout style
logo brand icon
color colour
presentation slides powerpoint deck slideshow
pdf document
signature sign
barcode qr
advertisement ad advertising marketing campaign
marketing seo promotion
review feedback rating opinion
opinion sentiment feeling emotion
social twitter facebook instagram media
tweet twitter post
follower subscriber
subscribe follow
"""


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        group = {stem(word) for word in line.split()}
        for term in group:
            table.setdefault(term, set()).update(group - {term})
    return {term: frozenset(others) for term, others in table.items()}


def synonyms(term: str) -> Iterable[str]:
    """Return the stems that this stem may also mean."""
    return _table().get(term, ())
