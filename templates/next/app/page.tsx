export default function Page() {
  return <p>The agents are at /troupe/api. Ask one with: npm run ask</p>;
}
